/// Every token that two ends must agree on, in one place (R3, R143). `docs/protocol.md` says what they mean.
public enum WireNames {
    /// ALPN of a client's link to the door.
    public static let alpnApp = "tk-app/1"
    /// ALPN of a box's link to the door.
    public static let alpnBox = "tk-box/1"
    /// ALPN of a plain link between two peers.
    public static let alpnPeer = "tk/1"
    /// Where a door's listener expects clients.
    public static let targetApp = "/v1/app"
    /// Where a door's listener expects boxes.
    public static let targetBox = "/v1/box"
    /// ALPN of HTTP/1.1, which the WebSocket needs (B39).
    public static let alpnHTTP = "http/1.1"
    /// WebSocket sub-protocol of a link with streams.
    public static let muxSubprotocol = "tk-mux.1"
}
