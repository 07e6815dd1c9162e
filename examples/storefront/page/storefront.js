// What a storefront has to do so that one intent is one order.
//
//  1. The key belongs to the form, not to the click: it is made and stored before
//     there is anything to press.
//  2. What is ordered is frozen and stored with the first click, before it is sent.
//     What cannot be stored is not sent.
//  3. Every click and every reload sends the same bytes with the same key, until
//     the gateway has settled it. No answer, half an answer and a proxy's error
//     page settle nothing.
//  4. A new key is made in one place: when the customer starts another order, and
//     only after the gateway's word that this is safe.
//  5. All tabs have one intent, the stored one. It is read again before anything is
//     made of it, for another tab may have gone on.

const $ = (id) => document.getElementById(id);

// The intent, as it is stored:
//   {user, key, body?, answer?: {status, replayed, document}}
let intent = load();

// Null where there is none, or none that this page has stored.
function load() {
  try {
    const stored = JSON.parse(localStorage.getItem("intent"));
    if (stored.body) {
      JSON.parse(stored.body);
    }
    return typeof stored.user === "string" && typeof stored.key === "string" ? stored : null;
  } catch {
    return null;
  }
}

// Stores an intent, and only then makes it that of this page. Storage can be full,
// or forbidden.
function keep(changed) {
  try {
    localStorage.setItem("intent", JSON.stringify(changed));
  } catch (error) {
    say("This browser does not let the page remember an order (" + error.name + "). Without that nothing is sent.");
    return false;
  }
  intent = changed;
  return true;
}

// Takes over what another tab has stored.
function adopt() {
  const stored = load();
  const known = stored?.key === intent?.key && intent?.answer && !stored?.answer; // it could not be stored
  if (stored && !known) {
    intent = stored;
  }
}

function newIntent(user) {
  return keep({ user, key: crypto.randomUUID() });
}

// A key is guarded per user, so the user must outlive a reload as well. A real
// storefront has a login here.
let token = { user: "", text: "" };
async function session(user) {
  const known = user ? "?user=" + encodeURIComponent(user) : "";
  const response = await fetch("/demo/session" + known, { method: "POST", signal: AbortSignal.timeout(10_000) });
  if (!response.ok) {
    throw new Error("no session: status " + response.status);
  }
  const visitor = await response.json();
  token = { user: visitor.user, text: visitor.token };
}

// One attempt. Returns the answer of the gateway, or throws when there is none.
async function attempt({ key, body }) {
  const response = await fetch("/api/orders", {
    method: "POST",
    headers: { "Authorization": "Bearer " + token.text, "Content-Type": "application/json", "Idempotency-Key": key },
    body,
    redirect: "error",
    signal: AbortSignal.timeout(25_000),
  });
  const document = await response.json(); // an error page of a proxy ends here
  const own = response.status === 201 ? document.order_id : document.code && document.outcome;
  if (!own) {
    throw new Error("status " + response.status + " is not an answer of the gateway");
  }
  return { status: response.status, replayed: response.headers.get("Idempotent-Replayed") === "true", document };
}

// Makes one attempt at an intent, and settles it if the answer does. Returns how
// long the gateway asks to wait.
async function once(wanted) {
  try {
    if (token.user !== wanted.user) {
      await session(wanted.user);
    }
    const answer = await attempt(wanted);
    log(answer.status + (answer.replayed ? ", replayed" : answer.document.code ? " " + answer.document.code : ", created"));
    if (answer.document.code === "UNAUTHENTICATED") {
      token = { user: "", text: "" }; // it has expired, or the gateway has another secret now
    } else if (!answer.document.retryable) {
      settle(wanted, answer);
    }
    return answer.document.retry_after_ms ?? 0;
  } catch (error) {
    log("no answer: " + error.message);
    return 0;
  }
}

const base = 200;
const cap = 10_000;

// Full jitter, and never before the gateway's retry_after_ms.
function pause(n, after) {
  return after + Math.random() * Math.min(cap, base * 2 ** n);
}

let sending = ""; // the key that is being sent

// Sends the intent until it is settled. A click that comes meanwhile sends it
// once more: the gateway makes one order of them.
async function send() {
  const wanted = { ...intent };
  const open = () => intent.key === wanted.key && !intent.answer;
  if (sending === wanted.key) {
    await once(wanted);
    return;
  }
  sending = wanted.key;
  for (let n = 0; open(); n++) {
    const after = await once(wanted);
    if (open()) {
      say("No answer yet. Sending the same order again, with the same key.");
      await new Promise((resolve) => setTimeout(resolve, pause(n, after)));
    }
  }
  if (sending === wanted.key) {
    sending = "";
  }
}

// What the gateway remembers of this very key. Any other refusal speaks of the
// request it answers, and not of one before it whose answer was lost; a browser
// even sends a request again by itself, and the page never hears of the first.
const verdicts = ["INSUFFICIENT_BALANCE", "OUT_OF_STOCK", "ORDER_ALREADY_EXISTS", "EXECUTION_FAILED"];

const made = (answer) => answer?.status === 201;

const verdict = (answer) => verdicts.includes(answer?.document.code);

// Whether an answer is the last word on the intent. Any other refusal leaves it
// open: the same can be sent again, and nothing else.
const final = (answer) => made(answer) || (verdict(answer) && answer.document.safe_new_key);

function settle(wanted, answer) {
  adopt();
  if (intent.key === wanted.key && !final(intent.answer)) {
    intent = { ...intent, answer };
    keep(intent); // otherwise it is asked again after a reload, and answered the same
  }
  show();
}

function log(text) {
  const line = document.createElement("li");
  line.textContent = text;
  $("log").append(line);
}

function say(text) {
  $("status").textContent = text;
}

function show() {
  $("key").textContent = intent?.key ?? "";
  const sent = Boolean(intent?.body);
  if (sent) {
    const order = JSON.parse(intent.body);
    $("dish").value = order.sku;
    $("portions").value = order.quantity;
  }
  $("dish").disabled = $("portions").disabled = sent;
  const answer = intent?.answer;
  const pressed = document.activeElement === $("order");
  $("order").disabled = final(answer) || !intent;
  $("receipt").hidden = !answer;
  if (!answer) {
    say(sent ? "Sending your order." : "");
    return;
  }
  const told = answer.document;
  $("title").textContent = made(answer) ? "Ordered" : told.title;
  $("detail").textContent = made(answer)
    ? "Order " + told.order_id + ", " + told.amount + (answer.replayed ? ". It had been made before; this is its first answer." : ".")
    : told.detail;
  $("another").hidden = !final(answer); // otherwise the key stays
  const again = " Press the button again to send the same order, with the same key.";
  say(made(answer) ? "Your order is in." : final(answer) ? "There is no order." : verdict(answer) ? "There is no order yet." + again :
    "Refused. Whether an attempt before it made the order is not known." + again);
  if (pressed && final(answer)) {
    $("title").focus(); // not a button: whoever pressed twice must not press that
  }
}

// Goes on with an intent that has no answer yet.
function resume() {
  show();
  if (intent?.body && !intent.answer) {
    send();
  }
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  adopt();
  if (!intent || final(intent.answer)) {
    show();
    return;
  }
  if (!intent.body || intent.answer) {
    const dish = $("dish").selectedOptions[0];
    const quantity = Number($("portions").value);
    const cents = quantity * Number(dish.dataset.price);
    const amount = Math.floor(cents / 100) + "." + String(cents % 100).padStart(2, "0");
    const body = intent.body ?? JSON.stringify({ sku: dish.value, quantity, amount });
    if (!keep({ user: intent.user, key: intent.key, body })) {
      return;
    }
  }
  resume();
});

// Not the button that was pressed to order: the second half of a double click
// must not begin another intent.
$("another").addEventListener("click", () => {
  const shown = intent.key;
  adopt();
  if (intent.key === shown && !newIntent(intent.user)) {
    return;
  }
  $("log").replaceChildren();
  resume();
  $("order").focus();
});

// Another tab has gone on, or the back button has brought this page back as it was.
addEventListener("storage", () => {
  adopt();
  resume();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) {
    adopt();
    resume();
  }
});

async function begin() {
  try {
    await session();
  } catch (error) {
    say("The gateway does not answer (" + error.message + "). Reload the page.");
    return;
  }
  adopt(); // another tab may have begun one meanwhile
  if (intent || newIntent(token.user)) {
    resume();
  }
}

resume(); // the page may have been reloaded in the middle
if (!intent) {
  begin();
}
