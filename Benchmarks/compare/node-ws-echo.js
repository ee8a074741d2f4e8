// An echo server over Debian's node-ws: node-ws-echo.js PORT [CERTIFICATE KEY]
const fs = require("fs");
const { WebSocketServer } = require("/usr/share/nodejs/ws");
const [port, certificate, key] = process.argv.slice(2);
const server = certificate
    ? require("https").createServer({
          cert: fs.readFileSync(certificate),
          key: fs.readFileSync(key),
          ciphers: "TLS_AES_128_GCM_SHA256:ECDHE+AESGCM",
      })
    : require("http").createServer();
const sockets = new WebSocketServer({ server, perMessageDeflate: false });
sockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
