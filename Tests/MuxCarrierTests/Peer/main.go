// A peer for the interop test: one end of a yamux session of hashicorp/yamux over standard input and output.
//
// As a server it takes the streams 1 and 3, as a client it opens them, and then opens two more and checks that its bytes
// come back. Every stream that the other end opens, the two of the messages included, is answered with its own bytes
// and ended when the other end has ended it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/yamux"
)

type pipes struct {
	io.Reader
	io.WriteCloser
}

func echo(stream *yamux.Stream) {
	io.Copy(stream, stream)
	stream.Close()
}

func check(session *yamux.Session, size int) {
	stream, err := session.OpenStream()
	if err != nil {
		fmt.Fprintln(os.Stderr, "open:", err)
		os.Exit(1)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	go stream.Write(sent)
	// This version of yamux reads nothing more after its own Close, so the end comes last.
	received := make([]byte, len(sent))
	count, err := io.ReadFull(stream, received)
	if err != nil || !bytes.Equal(sent, received) {
		fmt.Fprintln(os.Stderr, "echo:", count, err)
		os.Exit(1)
	}
	stream.Close()
}

func main() {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.LogOutput = os.Stderr
	conn := pipes{os.Stdin, os.Stdout}
	if os.Args[1] == "server" {
		session, err := yamux.Server(conn, config)
		if err != nil {
			os.Exit(1)
		}
		for {
			stream, err := session.AcceptStream()
			if err != nil {
				return
			}
			go echo(stream)
		}
	}
	session, err := yamux.Client(conn, config)
	if err != nil {
		os.Exit(1)
	}
	for lane := 0; lane < 2; lane++ {
		stream, err := session.OpenStream()
		if err != nil {
			os.Exit(1)
		}
		go echo(stream)
	}
	go func() {
		for {
			stream, err := session.AcceptStream()
			if err != nil {
				return
			}
			go echo(stream)
		}
	}()
	check(session, 16)
	check(session, 4<<20)
	fmt.Fprintln(os.Stderr, "client: all bytes came back")
	<-session.CloseChan()
}
