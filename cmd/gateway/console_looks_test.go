package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// contrasts lists the texts that are hard to read: below 4.5 to 1 (WCAG 2.2,
// 1.4.3), or 3 to 1 where they are large.
const contrasts = `(() => {
	const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const ground = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const weak = [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const e = texts.currentNode.parentElement;
		if (!texts.currentNode.data.trim() || !e.checkVisibility() || e.closest(":disabled") || e.closest("noscript, .hidden, .skip")) continue;
		const style = getComputedStyle(e);
		const [a, b] = [luminance(parse(style.color)), luminance(ground(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && +style.fontWeight >= 700;
		if (ratio < (large ? 3 : 4.5)) weak.push(ratio.toFixed(2) + " " + texts.currentNode.data.trim().slice(0, 40));
	}
	return weak;
})()`

// beyondTheEdge lists what is cut off at the right, but for tables that scroll
// within their own frame. Charts take a moment to take their new size.
const beyondTheEdge = `[...document.querySelectorAll("main *")]
	.filter((e) => !e.closest(".scroll, .hidden") && e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
	.map((e) => e.outerHTML.slice(0, 120))`

func TestTheConsoleOnSmallAndLargeScreensByDayAndNight(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.shows("#lab", "per key, measured on")
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			name := fmt.Sprintf("console-%s-%d", scheme, width)
			c.as(width, 844, scheme)
			require.LessOrEqual(t, evaluate[int](c, `document.documentElement.scrollWidth`), int(width), "%s scrolls sideways", name)
			require.Eventually(t, func() bool { return len(evaluate[[]string](c, beyondTheEdge)) == 0 }, time.Minute, 50*time.Millisecond,
				"%s: beyond the edge", name)
			require.Empty(t, evaluate[[]string](c, contrasts), "%s: hard to read", name)
			require.Zero(t, evaluate[int](c, `[...document.querySelectorAll(".chart canvas")].filter((e) => e.getBoundingClientRect().width < 200).length`), "%s: a chart without room", name)
			if width != 1280 || scheme != "light" {
				c.picture(name, "")
			}
		}
	}
}

func TestTheConsoleWithoutEyesAndWithoutAMouse(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.enterToken()

	// Whatever can be used or is a picture has a name that can be read out.
	tree, err := chromedp.Call(c.page, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	seen := map[string]int{}
	for _, n := range tree.Nodes {
		role := said(n.Role)
		switch role {
		case "button", "textbox", "searchbox", "slider", "combobox", "img", "image", "link", "region", "dialog", "main", "heading":
			seen[role]++
			if role != "main" {
				require.NotEmpty(t, said(n.Name), "a %s without a name", role)
			}
		}
	}
	require.GreaterOrEqual(t, seen["button"], 4)
	require.GreaterOrEqual(t, seen["region"], 7, "every piece is a landmark")
	require.Equal(t, 1, seen["slider"])
	require.Equal(t, 1, seen["main"])
	require.GreaterOrEqual(t, seen["img"]+seen["image"], 4, "every chart says in words what it shows")

	// Tab leads from the top to the slider and on to the button that applies it.
	c.run(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	var way []string
	for range 40 {
		c.run(chromedp.KeyEvent(kb.Tab))
		here := evaluate[string](c, `document.activeElement.id || document.activeElement.textContent.slice(0, 20)`)
		way = append(way, here)
		if here == "slider" {
			c.run(chromedp.KeyEvent(kb.ArrowLeft))
			c.shows("#chosen", "18 h")
		}
		if here == "apply" {
			break
		}
	}
	require.Contains(t, way, "slider")
	require.Equal(t, "apply", way[len(way)-1], strings.Join(way, " > "))
	c.run(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog #reason"))
	require.True(t, evaluate[bool](c, `document.querySelector("dialog").contains(document.activeElement)`), "the dialog takes the keyboard")
	c.run(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent("dialog"))
}

// said is the text of a value in the accessibility tree.
func said(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}
