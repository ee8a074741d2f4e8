internal import Dispatch
internal import FoundationEssentials
internal import Synchronization
internal import TransportKit

/// Answers the questions that come over the control socket. What it says holds no secret (B23).
struct ControlDesk: Sendable {
    let runner: HostRunner
    let network: NetworkIdentity
    let keeping: Keeping
    let config: String
    let state: String?

    /// The answer to a line, as a line.
    func answer(_ line: [UInt8]) -> [UInt8] {
        guard let request = try? JSONDecoder().decode(ControlRequest.self, from: Data(line)) else {
            return ControlCoding.line(
                ControlFailure(error: #"the request is not understood; ask for example {"request":"status"}"#))
        }
        switch request.request {
        case .status:
            return ControlCoding.line(
                runner.status(
                    config: config, state: state, network: network.key.map(keeping.name(of:)), memory: keeping.memory))
        case .explain:
            let name = request.carrier ?? ""
            guard var report = runner.explain(name) else {
                let hint = Words.nearest(to: name, among: runner.carrierNames).map { "did you mean '\($0)'? " } ?? ""
                return ControlCoding.line(
                    ControlFailure(
                        error: "there is no carrier '\(name.printable())'; \(hint)there are "
                            + Words.list(runner.carrierNames)))
            }
            for index in report.establishments.indices {
                report.establishments[index].network = report.establishments[index].network.map(keeping.name(of:))
            }
            return ControlCoding.line(report)
        case .pair, .devices, .name, .revoke:
            guard let box = runner.box else {
                return ControlCoding.line(ControlFailure(error: "the host that runs \(config) is no box"))
            }
            return Self.wait { await box.answer(request) }
        }
    }

    /// Waits for what the loop makes of a request. The threads on which answers are made are there to be waited on.
    private static func wait(_ body: @escaping @Sendable () async -> [UInt8]) -> [UInt8] {
        let answer = Mutex<[UInt8]?>(nil)
        let done = DispatchSemaphore(value: 0)
        let task = Task {
            let line = await body()
            answer.withLock { $0 = line }
            done.signal()
        }
        guard done.wait(timeout: .now() + .seconds(4)) == .success, let line = answer.withLock({ $0 }) else {
            task.cancel()
            return ControlCoding.line(ControlFailure(error: "the host is busy; ask again in a few seconds"))
        }
        return line
    }
}
