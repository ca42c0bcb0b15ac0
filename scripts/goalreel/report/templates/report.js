// The report's behaviour: the list of episodes, its filters and pages, and the film that it moves.
// GOALREEL (data.js) holds the table in pieces, each by columns; `frame` is the film's frame that
// shows the reset. Typed arrays hold a million rows in 33 MB.
"use strict";

const PAGE = 50; // rows that stand in the document at a time, however many episodes there are
const { fps } = GOALREEL;
const [reach, attempt, steps, frame] = ["reach", "attempt", "steps", "frame"].map((name) =>
  column(name, Int32Array),
);
const [seed, returned] = [column("seed", Float64Array), column("return", Float64Array)];
const reached = column("reached", Uint8Array);
GOALREEL.pieces = null;
const byId = (id) => document.getElementById(id);
const film = byId("film");
const list = byId("episodes");

let found = []; // numbers of the episodes that pass the filters, in film order
let page = 0;
let cursor = 0; // the keyboard's place, an index of `found`
let current = -1; // the episode that the film shows

function column(name, Numbers) {
  const pieces = GOALREEL.pieces.map((piece) => piece[name]);
  const whole = new Numbers(pieces.reduce((rows, piece) => rows + piece.length, 0));
  let place = 0;
  for (const piece of pieces) {
    whole.set(piece, place);
    place += piece.length;
  }
  return whole;
}

const number = (value) => value.toLocaleString("en-GB").replace("-", "−");

function clock(seconds) {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const [hours, minutes] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60];
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

function name(episode) {
  return `Reach ${reach[episode]}${attempt[episode] ? `, attempt ${attempt[episode]}` : ""}`;
}

function outcome(episode) {
  return reached[episode] ? "reached" : "failed";
}

function told(episode) {
  return (
    `${name(episode)}: ${outcome(episode)}, ${number(steps[episode])} steps, ` +
    `return ${number(returned[episode])}, seed ${seed[episode]}`
  );
}

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
  option.setAttribute("aria-label", `${told(episode)}, at ${clock(frame[episode] / fps)}`);
  option.append(
    cell(reach[episode], "reach"),
    cell(`${reached[episode] ? "✓" : "✗"} ${outcome(episode)}`, outcome(episode)),
    cell(number(steps[episode]), "steps"),
    cell(number(returned[episode]), "return"),
    cell(seed[episode], "seed"),
    cell(clock(frame[episode] / fps), "time"),
  );
  if (attempt[episode]) {
    // Where the row is narrow, it stands behind the seed in place of here.
    option.querySelector(".reach").append(cell(` · try ${attempt[episode]}`, "attempt"));
    option.querySelector(".seed").dataset.attempt = attempt[episode];
  }
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
  byId("of").textContent = `of ${number(pages)}`;
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

function filter() {
  const least = byId("least").valueAsNumber || 0;
  const most = Number.isNaN(byId("most").valueAsNumber) ? Infinity : byId("most").valueAsNumber;
  const digits = byId("seed").value.trim();
  const wanted = byId("outcome").value;
  found = [];
  for (let episode = 0; episode < reach.length; episode++) {
    if (
      steps[episode] >= least &&
      steps[episode] <= most &&
      (wanted === "" || reached[episode] === Number(wanted)) &&
      (digits === "" || String(seed[episode]).includes(digits))
    ) {
      found.push(episode);
    }
  }
  page = cursor = 0;
  byId("count").textContent = `${number(found.length)} of ${number(reach.length)} episodes`;
  drawPage();
}

function moveTo(place) {
  if (!found.length) return;
  cursor = Math.min(Math.max(place, 0), found.length - 1);
  page = Math.floor(cursor / PAGE);
  drawPage();
  bringIntoView(found[cursor]);
}

// Half a frame after the reset frame's time: its own time may round to the frame before.
function show(place) {
  moveTo(place);
  film.currentTime = (frame[found[place]] + 0.5) / fps;
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
    const place = placeOf(episode);
    if (place >= 0 && Math.floor(place / PAGE) !== page) {
      page = Math.floor(place / PAGE);
      drawPage();
    }
    bringIntoView(episode);
  }
  byId(`episode-${episode}`)?.setAttribute("aria-selected", "true");
}

// `found` is in ascending order.
function placeOf(episode) {
  let [low, high] = [0, found.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (found[middle] < episode) low = middle + 1;
    else high = middle;
  }
  return found[low] === episode ? low : -1;
}

const KEYS = {
  ArrowDown: () => moveTo(cursor + 1),
  ArrowUp: () => moveTo(cursor - 1),
  PageDown: () => moveTo(cursor + PAGE),
  PageUp: () => moveTo(cursor - PAGE),
  Home: () => moveTo(0),
  End: () => moveTo(found.length - 1),
  Enter: () => found.length && show(cursor),
};

list.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) show(Number(option.dataset.place));
});
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

filter();
update();
