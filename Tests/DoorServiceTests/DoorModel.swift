import TransportKit

/// What a door does, written down with plain records and searches: who is linked, who is in, which sessions there are.
struct DoorModel {
    struct Client {
        let device: Int
        let home: Int
        var hasEntered = false
        var isAdmitted = false
        var close: CloseCode?
        var isGone = false
        var ended: Set<Int> = []
        var isThere: Bool { close == nil && !isGone }
    }

    struct Box {
        let home: Int
        var roster: Set<Int>?
        var close: CloseCode?
        var isGone = false
        var ended: Set<[Int]> = []
        var isThere: Bool { close == nil && !isGone }
    }

    struct Session: Equatable {
        let client: Int
        let box: Int
        let device: Int
        let sid: Int
    }

    var clients: [Client] = []
    var boxes: [Box] = []
    var sessions: [Session] = []
    /// Which box link serves each home, and which client link each device of it.
    var serving: [Int: Int] = [:]
    var entered: [[Int]: Int] = [:]
    /// What each link is told, since it was last looked at.
    var toClient: [Int: [String]] = [:]
    var toBox: [Int: [String]] = [:]

    // MARK: - Boxes

    mutating func boxDials(home: Int) {
        boxes.append(Box(home: home))
        toBox[boxes.count - 1, default: []].append("message 2")
    }

    mutating func roster(_ devices: Set<Int>, of box: Int) {
        let isNew = boxes[box].roster == nil
        let home = boxes[box].home
        boxes[box].roster = devices
        if isNew {
            if let older = serving[home] { leave(box: older, .displaced) }
            serving[home] = box
            toBox[box, default: []].append("linked")
        }
        judge(home: home, tell: isNew)
    }

    mutating func admit(_ device: Int, of box: Int) {
        guard boxes[box].roster != nil else { return leave(box: box, .protocolError) }
        boxes[box].roster?.insert(device)
    }

    mutating func revoke(_ device: Int, of box: Int) {
        guard boxes[box].roster != nil else { return leave(box: box, .protocolError) }
        boxes[box].roster?.remove(device)
        judge(home: boxes[box].home, tell: false)
    }

    private mutating func judge(home: Int, tell: Bool) {
        guard let box = serving[home], let roster = boxes[box].roster else { return }
        for index in clients.indices where clients[index].isThere && clients[index].home == home {
            guard roster.contains(clients[index].device) else {
                leave(client: index, .refused)
                continue
            }
            let isNew = !clients[index].isAdmitted
            clients[index].isAdmitted = true
            if tell { toClient[index, default: []].append("box") }
            if isNew, clients[index].hasEntered { toClient[index, default: []].append("entered") }
        }
    }

    mutating func leave(box: Int, _ code: CloseCode?) {
        guard boxes[box].isThere else { return }
        if let code { boxes[box].close = code } else { boxes[box].isGone = true }
        for session in sessions where session.box == box { end(session, by: .box) }
        guard serving[boxes[box].home] == box else { return }
        serving[boxes[box].home] = nil
        // One that takes over has said so itself.
        if code == .displaced { return }
        for index in clients.indices where clients[index].isThere && clients[index].home == boxes[box].home {
            toClient[index, default: []].append("box")
        }
    }

    mutating func frame(of box: Int, device: Int, sid: Int, isEnd: Bool) {
        guard boxes[box].roster != nil else { return leave(box: box, .protocolError) }
        if let session = sessions.first(where: { $0.box == box && $0.device == device && $0.sid == sid }) {
            if isEnd { return end(session, by: .box) }
            toClient[session.client, default: []].append("tun \(sid)")
        } else if !isEnd, !boxes[box].ended.contains([device, sid]) {
            toBox[box, default: []].append("end \(device) \(sid)")
        }
    }

    // MARK: - Clients

    mutating func clientDials(device: Int, home: Int, tun: Int?) {
        clients.append(Client(device: device, home: home))
        let index = clients.count - 1
        if let box = serving[home] {
            guard boxes[box].roster?.contains(device) ?? false else {
                clients[index].close = .refused
                return
            }
            clients[index].isAdmitted = true
        }
        toClient[index, default: []].append("message 2")
        if let tun { begin(tun, of: index) }
    }

    mutating func enter(_ client: Int) {
        guard !clients[client].hasEntered else { return leave(client: client, .protocolError) }
        let key = [clients[client].home, clients[client].device]
        clients[client].hasEntered = true
        let older = entered.updateValue(client, forKey: key)
        if let older { leave(client: older, .displaced) }
        entered[key] = client
        if clients[client].isAdmitted { toClient[client, default: []].append("entered") }
    }

    mutating func frame(of client: Int, sid: Int, isEnd: Bool) {
        guard clients[client].hasEntered else { return leave(client: client, .protocolError) }
        if let session = sessions.first(where: { $0.client == client && $0.sid == sid }) {
            if isEnd { return end(session, by: .app) }
            toBox[session.box, default: []].append("tun \(session.device) \(sid)")
        } else if !isEnd, !clients[client].ended.contains(sid) {
            toClient[client, default: []].append("end \(sid)")
        }
    }

    mutating func begins(_ sid: Int, of client: Int) {
        guard clients[client].hasEntered else { return leave(client: client, .protocolError) }
        begin(sid, of: client)
    }

    private mutating func begin(_ sid: Int, of index: Int) {
        let client = clients[index]
        let others = Set(
            sessions.filter {
                $0.device == client.device && clients[$0.client].home == client.home && !clients[$0.client].hasEntered
            }.map(\.client))
        guard client.isAdmitted, let box = serving[client.home],
            !sessions.contains(where: { $0.box == box && $0.device == client.device && $0.sid == sid }),
            !client.ended.contains(sid), sessions.count(where: { $0.client == index }) < 4,
            client.hasEntered || others.count < 4
        else {
            toClient[index, default: []].append("end \(sid)")
            return
        }
        sessions.append(Session(client: index, box: box, device: client.device, sid: sid))
        toBox[box, default: []].append("begin \(client.device) \(sid)")
    }

    mutating func leave(client: Int, _ code: CloseCode?) {
        guard clients[client].isThere else { return }
        if let code { clients[client].close = code } else { clients[client].isGone = true }
        for session in sessions where session.client == client { end(session, by: .app) }
        let key = [clients[client].home, clients[client].device]
        if entered[key] == client { entered[key] = nil }
    }

    private enum End {
        case app
        case box
    }

    private mutating func end(_ session: Session, by end: End) {
        sessions.removeAll { $0 == session }
        clients[session.client].ended.insert(session.sid)
        boxes[session.box].ended.insert([session.device, session.sid])
        switch end {
        case .app: toBox[session.box, default: []].append("end \(session.device) \(session.sid)")
        case .box: toClient[session.client, default: []].append("end \(session.sid)")
        }
    }
}
