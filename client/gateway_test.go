package client_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/oncegate/oncegate/client"
)

// program is a real gateway with the embedded database, in a process of its
// own: the client must get along with what is shipped, not with what a test
// thinks of it. All tests share it, under users of their own.
type program struct {
	url    string
	dir    string
	binary string
	cmd    *exec.Cmd
	logs   sync.WaitGroup
}

var shared struct {
	once    sync.Once
	program *program
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if p := shared.program; p != nil {
		if err := p.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the gateway:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// gateway returns the shared gateway.
func gateway() *program {
	shared.once.Do(func() { shared.program, shared.err = launch() })
	if shared.err != nil {
		panic(shared.err)
	}
	return shared.program
}

func launch() (p *program, err error) {
	dir, err := os.MkdirTemp("", "oncegate-client-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	p = &program{dir: dir, binary: filepath.Join(dir, "oncegate")}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", p.binary, "github.com/oncegate/oncegate/cmd/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return p, p.serve("127.0.0.1:0")
}

var listening = regexp.MustCompile(`taking orders.*listen="?(127\.0\.0\.1:\d+)`)

// serve starts the process and waits until it takes orders.
func (p *program) serve(listen string) error {
	p.cmd = exec.Command(p.binary, "serve", "--http.listen", listen, "--admin.listen", "127.0.0.1:0", "--log.format", "text",
		"--data_dir", filepath.Join(p.dir, "data"))
	p.cmd.Stderr = nil
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	said := &bytes.Buffer{}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if match := listening.FindStringSubmatch(lines.Text()); match != nil {
			p.url = "http://" + match[1]
			p.logs.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
			return nil
		}
	}
	return fmt.Errorf("the gateway ended: %w\n%s", p.cmd.Wait(), said)
}

func (p *program) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	p.logs.Wait()
	return errors.Join(err, p.cmd.Wait(), os.RemoveAll(p.dir))
}

// token returns what speaks for a user.
func (p *program) token(user string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, p.binary, "token", "--user", user, "--data_dir", filepath.Join(p.dir, "data")).Output()
		return string(bytes.TrimSpace(out)), err
	}
}

// handler passes requests on to the gateway, for servers that stand between.
func (p *program) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on := r.Clone(r.Context())
		on.RequestURI = ""
		on.URL.Scheme, on.URL.Host = "http", p.url[len("http://"):]
		resp, err := http.DefaultTransport.RoundTrip(on)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
}

var dumplings = client.Line{SKU: "potsticker", Quantity: 2, Amount: "39.80"}
