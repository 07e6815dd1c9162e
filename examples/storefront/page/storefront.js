// What a storefront has to do so that one intent is one order.
//
//  1. The key belongs to the form, not to the click: it is made and stored before
//     there is anything to press.
//  2. What is ordered is frozen and stored with the first click, before it is sent.
//  3. Every click and every reload sends the same bytes with the same key, until
//     the gateway has settled it. No answer, half an answer and a proxy's error
//     page settle nothing.
//  4. A new key is made in one place: when the customer starts another order, and
//     only after the gateway's word that this is safe.

const $ = (id) => document.getElementById(id);

// The intent, as it is stored:
//   {user, key, body?, answer?: {status, replayed, document}}
let intent = load();

function load() {
  try {
    return JSON.parse(localStorage.getItem("intent"));
  } catch {
    return null;
  }
}

function store() {
  localStorage.setItem("intent", JSON.stringify(intent));
}

function newIntent(user) {
  intent = { user, key: crypto.randomUUID() };
  store();
}

// A key is guarded per user, so the user must outlive a reload as well. A real
// storefront has a login here.
let token = "";
async function session() {
  const known = intent?.user ? "?user=" + encodeURIComponent(intent.user) : "";
  const response = await fetch("/demo/session" + known, { method: "POST", signal: AbortSignal.timeout(10_000) });
  if (!response.ok) {
    throw new Error("no session: status " + response.status);
  }
  const visitor = await response.json();
  token = visitor.token;
  if (!intent) {
    newIntent(visitor.user);
  }
}

// One attempt. Returns the answer of the gateway, or throws when there is none.
async function attempt({ key, body }) {
  const response = await fetch("/api/orders", {
    method: "POST",
    headers: { "Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": key },
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
    if (!token) {
      await session();
    }
    const answer = await attempt(wanted);
    log(answer.status + (answer.replayed ? ", replayed" : answer.document.code ? " " + answer.document.code : ", created"));
    if (answer.document.code === "UNAUTHENTICATED") {
      token = ""; // it has expired, or the gateway has another secret now
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

let sending = false;

// Sends the intent until it is settled. A click that comes meanwhile sends it
// once more: the gateway makes one order of them.
async function send() {
  const wanted = { ...intent };
  const open = () => intent.key === wanted.key && !intent.answer;
  if (sending) {
    await once(wanted);
    return;
  }
  sending = true;
  for (let n = 0; open(); n++) {
    const after = await once(wanted);
    if (open()) {
      say("No answer yet. Sending the same order again, with the same key.");
      await new Promise((resolve) => setTimeout(resolve, pause(n, after)));
    }
  }
  sending = false;
}

// What the gateway remembers of this very key. Any other refusal speaks of the
// request it answers, and not of one before it whose answer was lost; a browser
// even sends a request again by itself, and the page never hears of the first.
const verdicts = ["INSUFFICIENT_BALANCE", "OUT_OF_STOCK", "ORDER_ALREADY_EXISTS", "EXECUTION_FAILED"];

function settle(wanted, answer) {
  if (intent.key === wanted.key && !intent.answer) {
    intent.answer = answer;
    store();
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
  $("dish").disabled = $("portions").disabled = sent;
  const answer = intent?.answer;
  $("order").disabled = Boolean(answer) || !intent;
  $("receipt").hidden = !answer;
  if (!answer) {
    say(sent ? "Sending your order." : "");
    return;
  }
  const made = answer.status === 201;
  $("title").textContent = made ? "Ordered" : answer.document.title;
  $("detail").textContent = made
    ? "Order " + answer.document.order_id + ", " + answer.document.amount + (answer.replayed ? ". It had been made before; this is its first answer." : ".")
    : answer.document.detail;
  // After a refusal that leaves it open whether there is an order, the key stays.
  const open = !made && !verdicts.includes(answer.document.code);
  $("another").hidden = !made && (open || !answer.document.safe_new_key);
  say(made ? "Your order is in." : open ? "Refused. Whether an attempt before it made the order is not known." : "There is no order.");
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (intent.answer) {
    return;
  }
  if (!intent.body) {
    const dish = $("dish").selectedOptions[0];
    const quantity = Number($("portions").value);
    const cents = quantity * Number(dish.dataset.price);
    const amount = Math.floor(cents / 100) + "." + String(cents % 100).padStart(2, "0");
    intent.body = JSON.stringify({ sku: dish.value, quantity, amount });
    store();
  }
  show();
  send();
});

// Not the button that was pressed to order: the second half of a double click
// must not begin another intent.
$("another").addEventListener("click", () => {
  newIntent(intent.user);
  $("log").replaceChildren();
  show();
  $("order").focus();
});

show();
if (intent?.body && !intent.answer) {
  send(); // the page was reloaded in the middle
} else if (!intent) {
  session().then(show, (error) => say("The gateway does not answer (" + error.message + "). Reload the page."));
}
