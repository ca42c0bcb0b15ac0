// The behavior of the report: the list of episodes with its filters, sorting and pages, the film,
// and the strip of frames of an episode.
// GOALREEL (data.js) holds the table in pieces, by column. `frame` is the film frame of an
// episode's reset. Typed arrays hold a million rows in 33 MB.
"use strict";

const PAGE = 50; // rows in the document at a time, for films of any length
const MOMENTS = 8; // frames in a strip
const KEPT = 40; // strips to remember
const { fps, unit, decimals, outcomes, signals } = GOALREEL;
const reaches = unit === "reach";
const WORD = reaches ? "Reach" : "Episode";
const column = (name, Numbers) => new Numbers(GOALREEL.pieces.flatMap((piece) => piece[name]));
const [number, steps, frame] = ["number", "steps", "frame"].map((name) => column(name, Int32Array));
const returned = column("return", Float64Array);
const seed = GOALREEL.pieces.flatMap((piece) => piece.seed); // strings beyond 2**53
const ended = column("outcome", Uint8Array); // indices of `outcomes`
const attempt = reaches ? column("attempt", Int32Array) : new Int32Array(number.length);
// How rare the episodes of a selection are: shares of all episodes, with the bounds of intervals.
const [share, shareLow, shareHigh] = ["share", "share_low", "share_high"].map((name) =>
  GOALREEL.pieces[0][name] ? column(name, Float64Array) : null,
);
GOALREEL.pieces = null;
const byId = (id) => document.getElementById(id);
const film = byId("film");
const finder = byId("finder");
const list = byId("episodes");
const ACROSS = film.width > 1.25 * film.height ? MOMENTS / 2 : MOMENTS; // frames in a strip's row
const heads = [...byId("columns").children];
const wholeNumber = new Intl.NumberFormat("en-GB");
const rounded = new Intl.NumberFormat("en-GB", {
  minimumFractionDigits: decimals,
  maximumFractionDigits: decimals,
});
// Sort keys. Sorting by number or time gives film order.
const KEYS_OF = { number: frame, outcome: ended, return: returned, steps, seed, time: frame };

let found = []; // rows of the episodes that match the filters, in list order
let places = new Int32Array(number.length); // the position of each episode in `found`, or -1
let order = { column: "number", up: true };
let page = 0;
let cursor = 0; // the position of the keyboard cursor in `found`
let current = -1; // the row of the episode that the film shows

const signed = (text) => text.replace("-", "−");
const counted = (value) => signed(wholeNumber.format(value));
const returnOf = (episode) => signed(rounded.format(returned[episode]));
const outcome = (episode) => outcomes[ended[episode]];

function clock(seconds) {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const [hours, minutes] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60];
  const left = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${left}` : `${minutes}:${left}`;
}

const time = (episode) => clock(frame[episode] / fps);

function name(episode) {
  return `${WORD} ${number[episode]}${attempt[episode] ? `, attempt ${attempt[episode]}` : ""}`;
}

const percent = (value) =>
  value.toLocaleString("en-GB", { style: "percent", maximumSignificantDigits: 2 });

function describe(episode) {
  const [part, low, high] = [share, shareLow, shareHigh].map((all) => all && percent(all[episode]));
  return (
    `${name(episode)}: ${outcome(episode)}, ${counted(steps[episode])} steps, ` +
    `return ${returnOf(episode)}, seed ${seed[episode]}` +
    (share ? `, share ${part} (${low} to ${high})` : "")
  );
}

// The text of each column for an episode.
const CELLS = {
  number: (episode) =>
    `${number[episode]}${attempt[episode] ? ` · try ${attempt[episode]}` : ""}`,
  outcome: (episode) => `${reaches ? (ended[episode] ? "✗ " : "✓ ") : ""}${outcome(episode)}`,
  return: returnOf,
  steps: (episode) => counted(steps[episode]),
  time,
  seed: (episode) => String(seed[episode]),
};

if (share) {
  KEYS_OF.share = share;
  CELLS.share = (episode) => percent(share[episode]);
}

// Returns the episode of a film frame. An episode begins after the last state of the one before, so
// its title card belongs to it.
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
  option.setAttribute("aria-label", `${describe(episode)}, at ${time(episode)}`);
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
  if (!rows.length) rows.push(cell("No episode matches the filters.", "empty"));
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

// Scrolls only the list. scrollIntoView would also scroll the page.
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
  const slack = 0.5 / 10 ** decimals; // compare returns as rounded in the list
  found = [];
  for (let episode = 0; episode < number.length; episode++) {
    if (
      steps[episode] >= least &&
      steps[episode] <= most &&
      !(returned[episode] < low - slack) && // NaN passes
      !(returned[episode] > high + slack) &&
      (wanted === "" || ended[episode] === Number(wanted)) &&
      (digits === "" || String(seed[episode]).includes(digits))
    ) {
      found.push(episode);
    }
  }
  arrange();
}

// Sorts `found`. Equal keys stay in film order.
function arrange() {
  const [keys, sign] = [KEYS_OF[order.column], order.up ? 1 : -1];
  const unknown = (episode) => Number.isNaN(keys[episode]); // comes last
  found.sort((a, b) => unknown(a) - unknown(b) || sign * (keys[a] - keys[b]) || a - b);
  places.fill(-1);
  found.forEach((episode, place) => (places[episode] = place));
  const sorted = heads.find((head) => head.dataset.column === order.column);
  for (const head of heads) {
    head.setAttribute("aria-pressed", head === sorted);
    head.dataset.order = head === sorted ? (order.up ? "up" : "down") : "";
  }
  page = cursor = 0;
  const way = order.column === "number" ? "" : `, sorted by ${sorted.textContent.toLowerCase()}`;
  byId("count").textContent =
    `${counted(found.length)} of ${counted(number.length)} episodes` +
    `${way}${order.up ? "" : ", descending"}`;
  drawPage();
}

// The first click sorts returns from the best, and other columns from the least.
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

// Half a frame later, since a frame's exact time may round to the frame before.
const moment = (shown) => (shown + 0.5) / fps;

function show(episode) {
  if (places[episode] >= 0) moveTo(places[episode]);
  else point(episode);
  film.currentTime = moment(frame[episode]);
  const tried = attempt[episode] ? `.${attempt[episode]}` : "";
  history.replaceState(null, "", `#${unit}=${number[episode]}${tried}`);
}

// Shows the row that the address names: #episode=3, or #reach=3.2 for its attempt 2.
function follow() {
  const [, wanted, tried = ""] = location.hash.match(/^#\w+=(\d+)(?:\.(\d+))?$/) ?? [];
  const episode = number.findIndex(
    (value, row) => value === Number(wanted) && (tried === "" || attempt[row] === Number(tried)),
  );
  if (episode >= 0) show(episode);
}

function update() {
  const shown = Math.floor(film.currentTime * fps);
  const episode = episodeAt(shown);
  if (signals) {
    if (episode !== current) drawCurves(episode);
    byId("step").value = Math.max(shown - frame[episode], 0);
  }
  if (episode === current) return;
  byId(`episode-${current}`)?.setAttribute("aria-selected", "false");
  current = episode;
  byId("now").textContent = describe(episode);
  // Do not move the list while the keyboard is used in it.
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

// The curves of the policy's signals in the episode that the film shows, and a slider on them.
function drawCurves(episode) {
  const [first, ranges] = [episode * signals.points, []];
  const lines = Object.entries(signals.of).map(([name, { low, high, curves }]) => {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    const points = Array.from({ length: signals.points }, (_, place) => {
      const value = curves.charCodeAt(first + place);
      return `${place},${low[episode] === high[episode] ? 128 : 255 - value}`;
    });
    line.setAttribute("points", points.join(" "));
    ranges.push(`${name} ${signed(String(low[episode]))} to ${signed(String(high[episode]))}`);
    return line;
  });
  byId("curves").setAttribute("viewBox", `0 -8 ${signals.points - 1} 271`);
  byId("curves").replaceChildren(...lines);
  byId("ranges").textContent = ranges.join(" · ");
  byId("step").max = steps[episode];
}

function seekStep(step) {
  film.currentTime = moment(frame[current] + step);
}

// The strip: a second, hidden video seeks evenly spaced steps of the selected episode, whose frames
// are drawn side by side. This needs no file other than the film.
const second = document.createElement("video");
const strips = new Map(); // finished strips by episode
const preview = byId("preview");
let requested = -1; // the episode whose strip is wanted
let drawing = false;

function point(episode) {
  if (episode === requested) return;
  requested = episode;
  preview.classList.add("loading"); // until its first frame is there
  byId("moments").textContent = `${name(episode)}: loading frames…`;
  if (!drawing) drawStrips();
}

async function drawStrips() {
  drawing = true;
  try {
    if (!second.src) {
      second.muted = true;
      second.preload = "auto";
      second.src = film.getAttribute("src");
      await nextEvent("loadeddata");
    }
    for (let shown = -1; shown !== requested; ) {
      shown = requested;
      await drawStrip(shown);
    }
    drawing = false;
  } catch {
    preview.hidden = true; // the film cannot be played, as #broken says
  }
}

function nextEvent(event) {
  return new Promise((done, failed) => {
    second.addEventListener(event, done, { once: true });
    second.addEventListener("error", failed, { once: true });
  });
}

// Seeks a frame, and resolves when it can be drawn, which may be later than `seeked`.
function seekTo(shown) {
  const painted = new Promise((done) => {
    second.requestVideoFrameCallback?.(done);
    setTimeout(done, 250); // no callback comes for a frame that is already shown
  });
  const sought = nextEvent("seeked");
  second.currentTime = moment(shown);
  return Promise.all([sought, painted]);
}

function emptyStrip() {
  const canvas = document.createElement("canvas");
  const width = Math.min(film.width, 1280 / ACROSS);
  const height = Math.round((width * film.height) / film.width);
  canvas.width = ACROSS * (width + 4) - 4;
  canvas.height = (MOMENTS / ACROSS) * (height + 4) - 4;
  canvas.id = "strip";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Frames of an episode");
  return [canvas, width, height];
}

async function drawStrip(episode) {
  const count = Math.min(MOMENTS, steps[episode] + 1);
  const shown = Array.from({ length: count }, (_, place) =>
    count > 1 ? Math.round((place * steps[episode]) / (count - 1)) : 0,
  );
  const label = `${name(episode)}: steps ${shown.map(counted).join(", ")}`;
  if (!strips.has(episode)) {
    const [canvas, width, height] = emptyStrip();
    const pen = canvas.getContext("2d");
    for (const [place, step] of shown.entries()) {
      await seekTo(frame[episode] + step);
      if (requested !== episode) return;
      const left = (place % ACROSS) * (width + 4);
      const top = Math.floor(place / ACROSS) * (height + 4);
      pen.drawImage(second, left, top, width, height);
      if (place === 0) present(canvas);
    }
    canvas.dataset.episode = episode;
    canvas.setAttribute("aria-label", `${count} frames of ${label}`);
    strips.set(episode, canvas);
    if (strips.size > KEPT) strips.delete(strips.keys().next().value);
  }
  present(strips.get(episode));
  byId("moments").textContent = label;
}

function present(canvas) {
  byId("strip").replaceWith(canvas);
  preview.classList.remove("loading");
}

// Makes each column as wide as its longest text.
function widths() {
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
    const lengths = [...extremes[kind]].map((episode) => CELLS[kind](episode).length + 0.5);
    // The first column marks the episode that the film shows.
    const widest = Math.max(...lengths) + (kind === "number" ? 2 : 0);
    return `${Math.max(head.textContent.length + 1, widest)}ch`;
  });
  finder.style.setProperty("--columns", columns.join(" "));
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
// A resting mouse also gets events when the list scrolls. They must not override the keyboard.
let mousePosition = "";
list.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  const position = `${event.screenX} ${event.screenY}`;
  if (!option || event.pointerType !== "mouse" || position === mousePosition) return;
  mousePosition = position;
  point(found[Number(option.dataset.place)]);
});
for (const head of heads) head.addEventListener("click", () => sortBy(head));
for (const link of document.querySelectorAll(".seek")) {
  link.addEventListener("click", () => {
    show(Number(link.dataset.row));
    film.scrollIntoView({ block: "nearest" });
  });
}
// Space plays the film unless the focused element uses it.
document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, select, button, a, summary, video, pre, .wide");
  if (event.key !== " " || busy || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (film.paused) film.play();
  else film.pause();
});
byId("filters").addEventListener("input", filter);
byId("outcome").addEventListener("change", filter); // the only event of some assistive programs
byId("filters").addEventListener("reset", () => setTimeout(filter)); // after the fields are reset
document.addEventListener("submit", (event) => event.preventDefault());
byId("previous").addEventListener("click", () => moveTo((page - 1) * PAGE));
byId("next").addEventListener("click", () => moveTo((page + 1) * PAGE));
byId("page").addEventListener("change", () => moveTo((byId("page").valueAsNumber - 1 || 0) * PAGE));
addEventListener("hashchange", follow);
film.addEventListener("timeupdate", update);
film.addEventListener("seeked", update);
film.addEventListener("error", () => (byId("broken").hidden = false));
if (film.error) byId("broken").hidden = false; // the error came before this script ran

if (signals) {
  for (const signal of Object.values(signals.of)) signal.curves = atob(signal.curves);
  byId("step").addEventListener("input", () => seekStep(byId("step").valueAsNumber));
  byId("drop").addEventListener("click", () => seekStep(signals.drop[current]));
}
byId("strip").replaceWith(emptyStrip()[0]);
widths();
new ResizeObserver(fit).observe(finder);
filter();
update();
point(found[0]);
follow();
