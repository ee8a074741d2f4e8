extension ConfigNode {
    /// The value at a path below this node, such as `tls.trust` or `allow[2]`, or as far as it goes.
    func nearest(to path: String) -> ConfigNode {
        var node = self
        for word in path.split(separator: ".") {
            let parts = word.split(separator: "[")
            guard let key = parts.first, let value = node[String(key)] else { return node }
            node = value
            for part in parts.dropFirst() {
                guard let index = Int(part.prefix { $0 != "]" }), case .list(let elements) = node.value,
                    elements.indices.contains(index)
                else { return node }
                node = elements[index]
            }
        }
        return node
    }
}
