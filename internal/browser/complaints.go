//go:build unix

package browser

import (
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
)

// complaints are what a page must never give a reason for. They are kept until
// the browser has ended: events come from its own goroutines.
type complaints struct {
	mu    sync.Mutex
	texts []string
}

func (c *complaints) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
		c.add("uncaught exception: " + text)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity && e.Entry.Level == log.EntryLevelError {
			c.add("refused by the content security policy: " + e.Entry.Text)
		}
	}
}

func (c *complaints) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
}

func (c *complaints) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.texts
}
