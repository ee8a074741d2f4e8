/// First in, first out.
struct Fifo<Element: Sendable>: Sendable {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }
    var count: Int { elements.count - head }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        // Moved out, so that whoever takes it may be its only holder.
        var taken: Element?
        swap(&taken, &elements[head])
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: head <= 64)
            head = 0
        } else if head >= 64, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return taken
    }

    mutating func removeAll(where matches: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map { !matches($0) } ?? false }
        head = 0
    }

    mutating func removeAll() {
        elements = []
        head = 0
    }
}
