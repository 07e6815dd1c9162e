// Package loopback reserves TCP ports on 127.0.0.1 for servers and proxies that
// tests start.
//
// A port that was found by listening on port 0 and closing again can be taken
// by anybody before the server gets to it, and once more each time that server
// is restarted. A [Port] stays reserved: a socket is bound to it for as long as
// the reservation lasts, without listening, so that a connection to it is
// refused until the real server listens and is refused again when it is gone.
//
// It must not know what listens there.
package loopback
