//go:build unix

package loopback

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// Port is a reserved port of 127.0.0.1. Servers that set SO_REUSEADDR, as all
// common ones do, can listen on it; nobody is given it by chance.
type Port struct {
	number int
	socket *os.File
}

// Reserve reserves a free port until [Port.Release] or the end of the process.
func Reserve() (*Port, error) {
	// The lock keeps a child process from being forked between the two calls
	// below and inheriting the socket.
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", os.NewSyscallError("socket", err))
	}
	number, err := bind(fd)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", joinClose(err, fd))
	}
	return &Port{number: number, socket: os.NewFile(uintptr(fd), "reserved port")}, nil
}

// bind binds fd to a port of the kernel's choice and returns its number.
// SO_REUSEADDR is what lets a second socket listen on the same port.
func bind(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("socket name is a %T", name)
	}
	return inet.Port, nil
}

func joinClose(err error, fd int) error {
	if closeErr := syscall.Close(fd); closeErr != nil {
		return fmt.Errorf("%w (and closing the socket: %w)", err, closeErr)
	}
	return err
}

// Number returns the port's number.
func (p *Port) Number() int { return p.number }

// Addr returns the port as host:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Release gives the port back.
func (p *Port) Release() error {
	if err := p.socket.Close(); err != nil {
		return fmt.Errorf("release port %d: %w", p.number, err)
	}
	return nil
}
