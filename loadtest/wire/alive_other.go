//go:build !unix

package wire

import "net"

// alive cannot look without waiting here: a connection that the server closed
// while it was idle is seen as broken when it is used.
func alive(net.Conn) bool { return true }
