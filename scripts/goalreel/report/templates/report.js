// The report's behaviour: the list of episodes, its filters, order and pages, the film that it
// moves, and the strip of pictures of an episode.
// GOALREEL (data.js) holds the table in pieces, each by columns; `frame` is the film's frame that
// shows the reset. Typed arrays hold a million rows in 33 MB.
"use strict";

const PAGE = 50; // rows that stand in the document at a time, however many episodes there are
const MOMENTS = 8; // pictures of a strip
const KEPT = 40; // strips that need not be drawn again
const { fps, unit, decimals, outcomes } = GOALREEL;
const reaches = unit === "reach";
const WORD = reaches ? "Reach" : "Episode";
const [number, steps, frame] = ["number", "steps", "frame"].map((name) => column(name, Int32Array));
const returned = column("return", Float64Array);
const seed = GOALREEL.pieces.flatMap((piece) => piece.seed); // those beyond 2**53 are texts
const ended = column("outcome", Uint8Array); // an index of `outcomes`
const attempt = reaches ? column("attempt", Int32Array) : new Int32Array(number.length);
GOALREEL.pieces = null;
const byId = (id) => document.getElementById(id);
const film = byId("film");
const finder = byId("finder");
const list = byId("episodes");
const heads = [...byId("columns").children];
const whole = new Intl.NumberFormat("en-GB");
const rounded = new Intl.NumberFormat("en-GB", {
  minimumFractionDigits: decimals,
  maximumFractionDigits: decimals,
});
// What the list is sorted by; that of `number` is film order, which is that of the time too.
const KEYS_OF = {
  number: frame,
  outcome: ended,
  return: returned,
  steps,
  seed,
  time: frame,
};

let found = []; // numbers of the episodes that pass the filters, in the list's order
let places = new Int32Array(number.length); // of each episode in `found`, -1 for none
let order = { column: "number", up: true };
let page = 0;
let cursor = 0; // the keyboard's place, an index of `found`
let current = -1; // the episode that the film shows

function column(name, Numbers) {
  const pieces = GOALREEL.pieces.map((piece) => piece[name]);
  const joined = new Numbers(pieces.reduce((rows, piece) => rows + piece.length, 0));
  let place = 0;
  for (const piece of pieces) {
    joined.set(piece, place);
    place += piece.length;
  }
  return joined;
}

const signed = (text) => text.replace("-", "−");
const counted = (value) => signed(whole.format(value));
const returnOf = (episode) => signed(rounded.format(returned[episode]));
const outcome = (episode) => outcomes[ended[episode]];

function clock(seconds) {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const [hours, minutes] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60];
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

const time = (episode) => clock(frame[episode] / fps);

function name(episode) {
  return `${WORD} ${number[episode]}${attempt[episode] ? `, attempt ${attempt[episode]}` : ""}`;
}

function told(episode) {
  return (
    `${name(episode)}: ${outcome(episode)}, ${counted(steps[episode])} steps, ` +
    `return ${returnOf(episode)}, seed ${seed[episode]}`
  );
}

// What a row shows of an episode, column by column.
const CELLS = {
  number: (episode) =>
    `${number[episode]}${attempt[episode] ? ` · try ${attempt[episode]}` : ""}`,
  outcome: (episode) => `${reaches ? (ended[episode] ? "✗ " : "✓ ") : ""}${outcome(episode)}`,
  return: returnOf,
  steps: (episode) => counted(steps[episode]),
  seed: (episode) => String(seed[episode]),
  time,
};

// Which episode a frame belongs to: one begins where the one before has shown its last state, so
// that a card before its reset is its own.
function episodeAt(shown) {
  let [low, high] = [0, frame.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const begins = frame[middle - 1] + steps[middle - 1] + 1;
    if (begins <= shown) low = middle;
    else high = middle - 1;
  }
  return low;
}

function cell(text, kind) {
  const span = document.createElement("span");
  span.textContent = text;
  span.className = kind;
  return span;
}

function row(place) {
  const episode = found[place];
  const option = document.createElement("div");
  option.id = `episode-${episode}`;
  option.className = place === cursor ? "episode cursor" : "episode";
  option.dataset.place = place;
  option.setAttribute("role", "option");
  option.setAttribute("aria-setsize", found.length);
  option.setAttribute("aria-posinset", place + 1);
  option.setAttribute("aria-selected", episode === current);
  option.setAttribute("aria-label", `${told(episode)}, at ${time(episode)}`);
  for (const [kind, text] of Object.entries(CELLS)) option.append(cell(text(episode), kind));
  option.children[1].classList.add(outcome(episode));
  return option;
}

function drawPage() {
  const pages = Math.max(Math.ceil(found.length / PAGE), 1);
  page = Math.min(Math.max(page, 0), pages - 1);
  const last = Math.min((page + 1) * PAGE, found.length);
  const rows = [];
  for (let place = page * PAGE; place < last; place++) rows.push(row(place));
  if (!rows.length) {
    rows.push(cell("No episode passes the filters.", "empty"));
  }
  list.replaceChildren(...rows);
  list.scrollTop = 0;
  const onPage = cursor >= page * PAGE && cursor < last;
  if (onPage) list.setAttribute("aria-activedescendant", `episode-${found[cursor]}`);
  else list.removeAttribute("aria-activedescendant");
  byId("page").value = page + 1;
  byId("page").max = pages;
  byId("of").textContent = `of ${counted(pages)}`;
  byId("previous").disabled = page === 0;
  byId("next").disabled = page === pages - 1;
}

// Scrolls the list alone: scrollIntoView would move the page under a reader's eyes.
function bringIntoView(episode) {
  const option = byId(`episode-${episode}`);
  if (!option) return;
  const [top, bottom] = [option.offsetTop, option.offsetTop + option.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

function range(name) {
  const [from, to] = ["from", "to"].map((end) => byId(`${name}-${end}`).valueAsNumber);
  return [Number.isNaN(from) ? -Infinity : from, Number.isNaN(to) ? Infinity : to];
}

function filter() {
  const [[least, most], [low, high]] = [range("steps"), range("return")];
  const digits = byId("seed").value.trim();
  const wanted = byId("outcome").value;
  const slack = 0.5 / 10 ** decimals; // a return passes as it is shown
  found = [];
  for (let episode = 0; episode < number.length; episode++) {
    if (
      steps[episode] >= least &&
      steps[episode] <= most &&
      returned[episode] >= low - slack &&
      returned[episode] <= high + slack &&
      (wanted === "" || ended[episode] === Number(wanted)) &&
      (digits === "" || String(seed[episode]).includes(digits))
    ) {
      found.push(episode);
    }
  }
  arrange();
}

// Puts `found` in order; what is alike stays in film order.
function arrange() {
  const [keys, sign] = [KEYS_OF[order.column], order.up ? 1 : -1];
  found.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
  places.fill(-1);
  found.forEach((episode, place) => {
    places[episode] = place;
  });
  for (const head of heads) {
    const sorted = head.dataset.column === order.column;
    head.setAttribute("aria-pressed", sorted);
    head.dataset.order = sorted ? (order.up ? "up" : "down") : "";
  }
  page = cursor = 0;
  const sorted = heads.find((head) => head.dataset.column === order.column).textContent;
  const way = order.column === "number" ? "" : `, by ${sorted.toLowerCase()}`;
  byId("count").textContent =
    `${counted(found.length)} of ${counted(number.length)} episodes` +
    `${way}${order.up ? "" : ", descending"}`;
  drawPage();
}

// A first click puts the best return on top, and of all else the least.
function sortBy(head) {
  const column = head.dataset.column;
  order = { column, up: order.column === column ? !order.up : column !== "return" };
  arrange();
}

function moveTo(place) {
  if (!found.length) return;
  cursor = Math.min(Math.max(place, 0), found.length - 1);
  page = Math.floor(cursor / PAGE);
  drawPage();
  bringIntoView(found[cursor]);
  point(found[cursor]);
}

// Half a frame after a frame's time: its own time may round to the frame before.
const moment = (shown) => (shown + 0.5) / fps;

function show(episode) {
  if (places[episode] >= 0) moveTo(places[episode]);
  else point(episode);
  film.currentTime = moment(frame[episode]);
}

function play() {
  if (film.paused) film.play();
  else film.pause();
}

function update() {
  const episode = episodeAt(Math.floor(film.currentTime * fps));
  if (episode === current) return;
  byId(`episode-${current}`)?.setAttribute("aria-selected", "false");
  current = episode;
  byId("now").textContent = told(episode);
  // Whoever moves in the list by keys is not taken elsewhere.
  if (byId("follow").checked && !film.paused && document.activeElement !== list) {
    const place = places[episode];
    if (place >= 0 && Math.floor(place / PAGE) !== page) {
      page = Math.floor(place / PAGE);
      drawPage();
    }
    bringIntoView(episode);
  }
  byId(`episode-${episode}`)?.setAttribute("aria-selected", "true");
}

// The strip: a second video, never shown, goes to evenly spread moments of the episode that is
// pointed at, and its pictures are drawn side by side. It takes no file beside the film, however
// many episodes there are.
const second = document.createElement("video");
const strips = new Map(); // finished ones, by episode
let pointed = -1; // the episode that is asked for
let drawing = false;

function point(episode) {
  pointed = episode;
  if (!drawing) drawStrips();
}

async function drawStrips() {
  drawing = true;
  try {
    if (!second.src) {
      second.muted = true;
      second.preload = "auto";
      second.src = film.getAttribute("src").split("#")[0];
      await heard("loadeddata");
    }
    for (let shown = -1; shown !== pointed; ) {
      shown = pointed;
      await drawStrip(shown);
    }
    drawing = false;
  } catch {
    byId("strip").parentElement.hidden = true; // the film cannot be played, which is said above
  }
}

function heard(event) {
  return new Promise((done, failed) => {
    second.addEventListener(event, done, { once: true });
    second.addEventListener("error", failed, { once: true });
  });
}

// Goes to a frame and resolves once its picture can be drawn, which may be later than `seeked`.
function seekTo(shown) {
  const pictured = new Promise((done) => {
    second.requestVideoFrameCallback?.(done);
    setTimeout(done, 250); // of a picture that is there already nothing comes
  });
  const sought = heard("seeked");
  second.currentTime = moment(shown);
  return Promise.all([sought, pictured]);
}

async function drawStrip(episode) {
  const strip = byId("strip");
  const count = Math.min(MOMENTS, steps[episode] + 1);
  const shown = Array.from({ length: count }, (_, place) =>
    count > 1 ? Math.round((place * steps[episode]) / (count - 1)) : 0,
  );
  const label = `${name(episode)}: steps ${shown.map(counted).join(", ")}`;
  // Two rows of wide pictures, or one of others.
  const across = second.videoWidth > 1.25 * second.videoHeight ? MOMENTS / 2 : MOMENTS;
  const width = Math.min(second.videoWidth, 1280 / across);
  const height = Math.round((width * second.videoHeight) / second.videoWidth);
  if (!strips.has(episode)) {
    const canvas = document.createElement("canvas");
    const rows = MOMENTS / across;
    [canvas.width, canvas.height] = [across * (width + 4) - 4, rows * (height + 4) - 4];
    const pen = canvas.getContext("2d");
    for (const [place, step] of shown.entries()) {
      await seekTo(frame[episode] + step);
      const left = (place % across) * (width + 4);
      const top = Math.floor(place / across) * (height + 4);
      pen.drawImage(second, left, top, width, height);
      if (pointed !== episode) return;
    }
    strips.set(episode, canvas);
    if (strips.size > KEPT) strips.delete(strips.keys().next().value);
  }
  const canvas = strips.get(episode);
  [strip.width, strip.height] = [canvas.width, canvas.height];
  strip.getContext("2d").drawImage(canvas, 0, 0);
  strip.setAttribute("aria-label", `${count} pictures of ${label}`);
  strip.dataset.episode = episode;
  byId("moments").textContent = label;
}

// The columns are as wide as their longest text, and stand side by side where there is room.
function widths() {
  const length = (text) => text.length + 0.5;
  const extremes = Object.fromEntries(Object.keys(CELLS).map((kind) => [kind, new Set()]));
  for (const [kind, values] of Object.entries({ ...KEYS_OF, number, attempt })) {
    let [least, most] = [0, 0];
    for (let episode = 0; episode < values.length; episode++) {
      if (values[episode] < values[least]) least = episode;
      if (values[episode] > values[most]) most = episode;
    }
    extremes[kind === "attempt" ? "number" : kind].add(least).add(most);
  }
  const columns = heads.map((head) => {
    const kind = head.dataset.column;
    const texts = [...extremes[kind]].map((episode) => length(CELLS[kind](episode)));
    // The first has a mark before the number of the episode that is shown.
    const widest = Math.max(...texts) + (kind === "number" ? 2 : 0);
    return `${Math.max(head.textContent.length + 1, widest)}ch`;
  });
  const [first, ...others] = columns;
  finder.style.setProperty("--columns", `minmax(${first}, 1fr) ${others.join(" ")}`);
}

function fit() {
  const columns = byId("columns");
  finder.classList.remove("narrow");
  finder.classList.toggle("narrow", columns.scrollWidth > columns.clientWidth);
}

const KEYS = {
  ArrowDown: () => moveTo(cursor + 1),
  ArrowUp: () => moveTo(cursor - 1),
  PageDown: () => moveTo(cursor + PAGE),
  PageUp: () => moveTo(cursor - PAGE),
  Home: () => moveTo(0),
  End: () => moveTo(found.length - 1),
  Enter: () => found.length && show(found[cursor]),
};

list.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) show(found[Number(option.dataset.place)]);
});
list.addEventListener("focus", () => found.length && point(found[cursor]));
// A mouse that rests gets events too, when the list moves under it: whoever uses the keys keeps theirs.
let rest = "";
list.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  const where = `${event.screenX} ${event.screenY}`;
  if (!option || event.pointerType !== "mouse" || where === rest) return;
  rest = where;
  const episode = found[Number(option.dataset.place)];
  if (episode !== pointed) point(episode);
});
for (const head of heads) head.addEventListener("click", () => sortBy(head));
for (const link of document.querySelectorAll(".seek")) {
  link.addEventListener("click", () => show(Number(link.dataset.row)));
}
// Space plays wherever it does nothing of its own.
document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, select, button, a, summary, video, pre, .wide");
  if (event.key !== " " || busy || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  play();
});
byId("filters").addEventListener("input", filter);
byId("outcome").addEventListener("change", filter); // all that some assistive programs send
byId("filters").addEventListener("reset", () => setTimeout(filter)); // once the fields are empty
for (const form of document.forms) {
  form.addEventListener("submit", (event) => event.preventDefault());
}
byId("previous").addEventListener("click", () => moveTo((page - 1) * PAGE));
byId("next").addEventListener("click", () => moveTo((page + 1) * PAGE));
byId("page").addEventListener("change", () => moveTo((byId("page").valueAsNumber - 1 || 0) * PAGE));
film.addEventListener("timeupdate", update);
film.addEventListener("seeked", update);
film.addEventListener("error", () => {
  byId("broken").hidden = false;
});
if (film.error) byId("broken").hidden = false; // it failed before this script ran

widths();
new ResizeObserver(fit).observe(finder);
filter();
update();
point(found[0]);
