internal import Glibc
internal import TransportKit

/// Finds out who holds a port, as far as `/proc` tells this user.
enum PortHolder {
    /// `held by sshd (process 812)`, or nil where it cannot be told.
    static func describe(_ kind: PortUse.Kind, port: UInt16) -> String? {
        let tables = kind == .tcp ? ["tcp", "tcp6"] : ["udp", "udp6"]
        let held = Set(tables.flatMap { inodes(inTable: "/proc/net/\($0)", port: port, isListening: kind == .tcp) })
        guard !held.isEmpty, let holder = process(holding: held) else { return nil }
        return "held by \(holder.name) (process \(holder.id))"
    }

    private static func inodes(inTable path: String, port: UInt16, isListening: Bool) -> [String] {
        guard let text = contents(of: path) else { return [] }
        return text.split(separator: "\n").dropFirst().compactMap { line in
            // sl local_address rem_address st … inode is the tenth (proc(5)).
            let fields = line.split(separator: " ")
            guard fields.count > 9, let hexadecimal = fields[1].split(separator: ":").last,
                UInt16(hexadecimal, radix: 16) == port, !isListening || fields[3] == "0A"
            else { return nil }
            return String(fields[9])
        }
    }

    private static func process(holding inodes: Set<String>) -> (id: Int32, name: String)? {
        let wanted = Set(inodes.map { "socket:[\($0)]" })
        for entry in names(in: "/proc") {
            guard let id = Int32(entry) else { continue }
            let descriptors = "/proc/\(entry)/fd"
            for descriptor in names(in: descriptors) {
                guard let target = linkTarget("\(descriptors)/\(descriptor)"), wanted.contains(target) else { continue }
                let name = contents(of: "/proc/\(entry)/comm").map { String($0.prefix { $0 != "\n" }) }
                return (id, (name ?? "a process").printable())
            }
        }
        return nil
    }

    private static func names(in folder: String) -> [String] {
        guard let stream = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            names.append(name)
        }
        return names
    }

    private static func linkTarget(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = unsafe buffer.withUnsafeMutableBytes { room in
            guard let start = unsafe room.bindMemory(to: CChar.self).baseAddress else { return 0 }
            return unsafe readlink(path, start, room.count)
        }
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    private static func contents(of path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return count == 0 ? String(decoding: bytes, as: UTF8.self) : nil }
            bytes += chunk[..<count]
        }
    }
}
