//go:build unix

// Package browser gives tests a real browser: headless Chromium, driven by
// chromedp.
//
// [New] starts a private one, with a profile of its own that ends with the
// test, and installs Debian's package where there is none (on Debian, as root).
// Without Chromium the test is skipped, and fails where CI=true.
//
// It promises that pages reach nothing but this machine, that no proxy of the
// environment stands between, and that a page's uncaught exception or a breach
// of its content security policy fails the test. It must not know the product's
// pages.
package browser
