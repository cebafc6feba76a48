// Draws the report out of the JSON in #data. Text reaches the page through textContent only, so
// nothing in a run can become markup; the page's policy also forbids it to be parsed as such.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const DATA = JSON.parse($("data").textContent);
  const ACTIONS = ["Quiet", "Warned", "Asked", "Stopped"];
  const OUTCOMES = { success: "solved", fail: "failed", unknown: "outcome unknown" };
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const COLOURS = 8;
  const ROWS = 150; // Rows added at once: more than two screens, little enough to be instant.
  const CELLS = 600; // Calls of an open timeline added at once.
  const SORTS = {
    saved: ["Calls saved", (run) => run.d, -1],
    action: ["Guard", (run) => run.a, -1],
    calls: ["Calls", (run) => run.n, -1],
    tokens: ["Tokens", (run) => run.T || 0, -1],
    time: ["Time", (run) => run.S || 0, -1],
    outcome: ["Outcome", (run) => run.o, -1],
    source: ["Source", (run) => DATA.sources[run.s], 1],
    id: ["Id", (run) => run.i, 1],
    read: ["Order read", (run) => run.at, 1],
  };
  const RESULTS = {
    n: ["a new result", ""],
    e: ["a result it had got before", "eq"],
    x: ["failed, with a new result", "er"],
    y: ["failed as before", "er eq"],
    m: ["no result recorded", "no"],
    r: ["refused, did not run", "rf"],
  };

  const collator = new Intl.Collator("en", { numeric: true });
  const format = (count) => count.toLocaleString("en");
  const many = (count, word) => `${format(count)} ${word}${count === 1 ? "" : "s"}`;
  const share = (part, whole) => (whole && part ? `${((100 * part) / whole).toFixed(1)} %` : "");

  function time(seconds) {
    if (seconds >= 3600) return `${(seconds / 3600).toFixed(1)} h`;
    return seconds >= 60 ? `${(seconds / 60).toFixed(1)} min` : `${Math.round(seconds)} s`;
  }

  function make(tag, options = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "class") node.className = value;
      else if (name === "text") node.textContent = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // ---- one run -----------------------------------------------------------------------------

  // Works out once which calls are repeated, and the step of each call.
  function lay(run) {
    if (run.cells) return run;
    run.times = new Array(run.g.length).fill(0);
    for (const call of run.c) run.times[call] += 1;
    run.repeated = [...run.times.keys()].filter((call) => run.times[call] > 1);
    run.repeated.sort((one, other) => run.times[other] - run.times[one] || one - other);
    run.rank = new Array(run.g.length).fill(-1);
    run.repeated.forEach((call, rank) => { run.rank[call] = rank; });
    const turns = new Set(run.t);
    run.cells = [...run.m].flatMap((action, step) => {
      const size = run.z ? run.z[step] : 1;
      return Array.from({ length: size }, (_, place) => ({
        step, place, size, turn: !place && turns.has(step), action: Number(action),
      }));
    });
    return run;
  }

  const letter = (run, call) => (run.rank[call] < 0 ? "" : LETTERS[run.rank[call]] || "+");
  const tool = (run, call) => DATA.tools[run.g[call]];

  // The colours of the style sheet as a canvas takes them.
  function inks() {
    const probe = document.body.appendChild(make("i"));
    const names = ["ink", "soft", "shade", "once-line", "a1", "a2", "a3"];
    for (let at = 0; at < COLOURS; at += 1) names.push(`g${at}`);
    const found = Object.fromEntries(names.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }));
    probe.remove();
    return found;
  }

  function draw(canvas) {
    const run = lay(shown[canvas.dataset.at]);
    const ink = inks();
    const scale = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const unit = Math.min(14, canvas.clientWidth / Math.max(run.cells.length, 1));
    const wide = Math.max(unit - (unit >= 4 ? 1 : 0), 0.6);
    const box = (colour, x, y, width, height) => {
      pen.fillStyle = ink[colour];
      pen.fillRect(x, y, width, height);
    };
    if (run.h) box("shade", (run.h[1] - 1) * unit, 0, (run.cells.length - run.h[1] + 1) * unit, 30);
    run.cells.forEach((cell, at) => {
      const rank = run.rank[run.c[at]];
      const [, mark] = RESULTS[run.r[at]];
      if (cell.action) box(`a${cell.action}`, at * unit, 0, wide, 2 + 2 * cell.action);
      const height = mark === "rf" ? 3 : 13;
      box(rank < 0 ? "once-line" : `g${rank % COLOURS}`, at * unit, 9, wide, height);
      if (mark.includes("eq")) box("ink", at * unit, 25, wide, 2);
      if (mark.includes("er")) box("a2", at * unit, 23, wide / 2, 6);
      if (cell.turn) box("soft", at * unit - 1, 7, 1, 23);
    });
  }

  // Canvases cost memory, so only those near the window have one.
  const inView = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        inView.add(target);
        draw(target);
      } else if (inView.delete(target)) target.width = target.height = 0;
    }
  }, { rootMargin: "300px 0px" });

  function did(run) {
    const fires = [["warned", run.w], ["asked", run.k], ["stopped", run.x]];
    const parts = fires.filter(([, at]) => at).map(([word, at]) => `${word} at call ${format(at[1])}`);
    return parts.join(", ") || "said nothing";
  }

  function size(run) {
    const parts = [many(run.n, "call")];
    if (run.T) parts.push(`${format(run.T)} tokens`);
    if (run.S) parts.push(time(run.S));
    if (run.d) parts.push(`${format(run.d)} saved`);
    return parts.join(" · ");
  }

  function row(run, at) {
    const label = run.l ? `labelled ${run.l} · ` : "";
    const strip = make("canvas", { width: "0", role: "img", "aria-label": `Timeline of ${many(run.n, "call")}: the guard ${did(run)}.`, "data-at": at });
    const end = make("span", { class: "end" }, make("span", { text: run.v || "no finding", title: did(run) }), make("small", { text: size(run) }));
    const head = make(
      "summary",
      {},
      make("span", { class: `chip a${run.a}`, text: ACTIONS[run.a] }),
      make(
        "span",
        { class: "who" },
        make("bdi", { text: run.i || "(no id)", title: run.i }),
        make("small", {}, `${OUTCOMES[run.o]} · ${label}`, make("bdi", { text: DATA.sources[run.s] || "(no source)", title: DATA.sources[run.s] })),
      ),
      strip,
      end,
    );
    const item = make("details", { class: "run", "data-at": at }, head);
    item.addEventListener("toggle", () => {
      if (item.open && !item.querySelector(".open")) item.append(details(lay(run)));
    });
    watch.observe(strip);
    return item;
  }

  // ---- an open run -------------------------------------------------------------------------

  function describe(run, at) {
    const cell = run.cells[at];
    const call = run.c[at];
    const times = run.times[call];
    const step = cell.size > 1 ? `, ${cell.place + 1} of ${cell.size} in step ${cell.step + 1}` : "";
    const same = times > 1 ? `made ${times === 2 ? "twice" : `${format(times)} times`}` : "made once";
    const guard = cell.action ? ` The guard ${ACTIONS[cell.action].toLowerCase()} here.` : "";
    const saved = run.h && at >= run.h[1] - 1 ? " It would have been saved." : "";
    return `Call ${format(at + 1)}${step}: ${[tool(run, call), letter(run, call)].filter(Boolean).join(" ")}, ${same}; ${RESULTS[run.r[at]][0]}.${guard}${saved}`;
  }

  function timeline(run) {
    const box = make("div", { class: "calls", role: "listbox", tabindex: "0", "aria-label": `Calls of ${run.i}` });
    const info = make("div", { "aria-live": "polite" }, make("p", { class: "quiet", text: "Choose a call to read about it." }));
    const more = make("button", { type: "button", text: "Show more calls" });
    const cells = [];
    let here = -1;
    function fill() {
      for (const end = Math.min(run.cells.length, cells.length + CELLS); cells.length < end;) {
        const at = cells.length;
        const cell = run.cells[at];
        const rank = run.rank[run.c[at]];
        const marks = ["c", RESULTS[run.r[at]][1]];
        if (rank >= 0) marks.push(`g${rank % COLOURS}`);
        if (cell.place) marks.push("with");
        else if (cell.action) marks.push(`f${cell.action}`);
        if (run.h && at >= run.h[1] - 1) marks.push("off");
        const text = describe(run, at);
        cells.push(make("span", { class: marks.join(" "), role: "option", id: `call-${run.at}-${at}`, "aria-label": text, "aria-selected": "false", title: text, "data-call": at }, make("b", { text: letter(run, run.c[at]) })));
        if (cell.turn) box.append(make("span", { class: "turn" }));
        box.append(cells[at]);
      }
      more.hidden = cells.length === run.cells.length;
    }
    function choose(to) {
      const at = Math.max(0, Math.min(run.cells.length - 1, to));
      while (cells.length <= at) fill();
      here = at;
      cells.forEach((cell, other) => {
        cell.classList.toggle("here", other === at);
        cell.classList.toggle("same", other !== at && run.c[other] === run.c[at]);
        cell.setAttribute("aria-selected", String(other === at));
      });
      box.setAttribute("aria-activedescendant", cells[at].id);
      cells[at].scrollIntoView({ block: "nearest" });
      info.replaceChildren(make("p", { text: describe(run, at) }));
      if (!run.p) return;
      info.append(
        make("pre", { text: run.p[run.c[at]], "aria-label": "Arguments" }),
        make("pre", { text: run.q[at] < 0 ? "(no result recorded)" : run.y[run.q[at]], "aria-label": "Result" }),
      );
    }
    function equal(way) {
      for (let at = here + way; at >= 0 && at < run.c.length; at += way) if (run.c[at] === run.c[here]) return at;
      return here;
    }
    box.addEventListener("click", ({ target }) => {
      const cell = target.closest(".c");
      if (cell) choose(Number(cell.dataset.call));
    });
    box.addEventListener("keydown", (event) => {
      const go = { ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: equal(1), ArrowUp: equal(-1), Home: 0, End: run.cells.length - 1 }[event.key];
      if (go === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      choose(go);
    });
    more.addEventListener("click", fill);
    fill();
    return make("div", { class: "full" }, make("h3", { text: "Calls" }), box, more, info);
  }

  function facts(run) {
    const place = ([step, call, before]) => `call ${format(call)}${step === call ? "" : `, step ${format(step)}`}, ${before ? "before it ran" : "by its result"}`;
    const list = make("dl");
    const add = (name, text) => list.append(make("dt", { text: name }), make("dd", { text }));
    add("Size", `${size(run)}; ${many(run.b, "step")}, ${many(run.u, "turn")}`);
    if (run.c.length < run.n) add("Ended", `at call ${format(run.c.length)}: the calls recorded after it are not drawn`);
    add("Warns at", run.w ? place(run.w) : "never");
    add("Asks at", run.k ? place(run.k) : "never");
    add("Stops at", run.x ? place(run.x) : "never");
    if (run.h) add("Saved", `${many(run.d, "call")} of ${format(run.n)}, from call ${format(run.h[1])} on`);
    return make("div", {}, make("h3", { text: "What the guard did" }), list, ...repeated(run));
  }

  function repeated(run) {
    if (!run.repeated.length) return [make("p", { class: "quiet", text: "No call was made twice." })];
    const known = new Array(run.g.length).fill(0);
    run.c.forEach((call, at) => { if ("ey".includes(run.r[at])) known[call] += 1; });
    const body = make("tbody", {}, ...run.repeated.slice(0, 12).map((call) => make(
      "tr",
      {},
      make("td", { class: "l" }, make("span", { class: `c g${run.rank[call] % COLOURS}` }, make("b", { text: letter(run, call) }))),
      make("td", { class: "l" }, make("bdi", { text: tool(run, call) })),
      make("td", { text: format(run.times[call]) }),
      make("td", { text: format(known[call]) }),
    )));
    const heads = ["Call", "Tool", "Made", "Known results"].map((text, at) => make("th", { scope: "col", class: at < 2 ? "l" : "", text }));
    return [make("h3", { text: "Repeated calls" }), make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)];
  }

  function findings(run) {
    const lines = run.f.map(([rule, action, from, to, count, text]) => make(
      "li",
      {},
      make("span", { class: `chip a${action}`, text: ACTIONS[action] }),
      make("span", {}, text, make("small", { text: `${rule} · ${from === to ? `step ${format(from)}` : `steps ${format(from)} to ${format(to)}, ${format(count)} times`}` })),
    ));
    return make("div", {}, make("h3", { text: "Findings" }), make("ul", { class: "found" }, ...(lines.length ? lines : ["None."])));
  }

  function details(run) {
    const parts = [...(run.n ? [timeline(run)] : []), facts(run), findings(run)];
    return make("div", { class: "open", role: "group", "aria-label": `Run ${run.i}` }, ...parts);
  }

  // ---- filter, sort, show ------------------------------------------------------------------

  const EMPTY = { q: "", action: "", outcome: "", source: "", sort: "saved", order: "" };
  const state = { ...EMPTY };
  let shown = [];

  function apply() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    shown = DATA.runs.filter((run) => {
      run.hay ??= [run.i, run.v, ...run.g.map((at) => DATA.tools[at])].join("\n").toLowerCase();
      return (state.action === "" || run.a === Number(state.action))
        && (state.outcome === "" || run.o === state.outcome)
        && (state.source === "" || run.s === Number(state.source))
        && words.every((word) => run.hay.includes(word));
    });
    const [, key, usual] = SORTS[state.sort];
    const way = Number(state.order) || usual;
    const compare = (one, other) => (typeof one === "number" ? one - other : collator.compare(one, other));
    shown.sort((one, other) => way * compare(key(one), key(other)) || other.a - one.a || other.d - one.d || one.at - other.at);
    watch.disconnect();
    inView.clear();
    $("runs").replaceChildren();
    fillRows();
    const sum = (part) => shown.reduce((all, run) => all + run[part], 0);
    $("status").textContent = shown.length
      ? `${many(shown.length, "run")} of ${format(DATA.runs.length)}, ${many(sum("n"), "call")}, ${format(sum("d"))} of them saved.`
      : "No run fits. Clear the filters to see all.";
    for (const name of ["q", "outcome", "source", "sort"]) $(name).value = state[name];
    $("order").textContent = way < 0 ? "Largest first ↓" : "Smallest first ↑";
    $("order").dataset.way = way;
    for (const tile of $("tiles").querySelectorAll("button")) tile.setAttribute("aria-pressed", String(tile.dataset.action === state.action));
    const kept = Object.entries(state).filter(([name, value]) => value !== EMPTY[name]);
    try {
      history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : location.pathname + location.search);
    } catch {
      // Some viewers don't let a page name its own address.
    }
  }

  function fillRows() {
    const from = $("runs").children.length;
    $("runs").append(...shown.slice(from, from + ROWS).map((run, at) => row(run, from + at)));
    $("more").hidden = from + ROWS >= shown.length;
  }

  function fromAddress() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (name in state) state[name] = value;
    if (!Object.hasOwn(SORTS, state.sort)) state.sort = EMPTY.sort;
    for (const name of ["outcome", "source"]) if (![...$(name).options].some((one) => one.value === state[name])) state[name] = "";
    if (!/^[0-3]?$/.test(state.action)) state.action = "";
    if (!/^(-?1)?$/.test(state.order)) state.order = "";
  }

  // ---- the top -----------------------------------------------------------------------------

  function notice(text, lines) {
    if (!lines.length) return;
    const list = make("ul", {}, ...lines.map((line) => make("li", { text: line })));
    $("notices").append(make("details", { class: "notice" }, make("summary", { text }), list));
  }

  function top() {
    const [runs, calls, actions, saved] = DATA.all;
    const content = DATA.content ? "Arguments and results are shown; known secret shapes are masked." : "Arguments and results are not in this page.";
    $("about").textContent = `Policy ${DATA.policy} on ${many(runs, "run")} of ${many(DATA.sources.length, "source")}. ${content}`;
    notice(`${many(DATA.problems.length, "part")} of the input could not be read`, DATA.problems);
    notice(`${many(DATA.ignored.length, "file")} in the directories held no run`, DATA.ignored);
    if (DATA.runs.length < runs) $("notices").append(make("p", { class: "notice", text: `The list holds ${format(DATA.runs.length)} of ${format(runs)} runs, those with the most to tell; the counts are of all.` }));
    const tile = (action, label, count, note) => {
      const button = make("button", { type: "button", class: "tile", "data-action": action, "aria-pressed": "false" }, make("span", { class: action && `chip a${action}`, text: label }), make("strong", { text: format(count) }), make("small", { text: note || "\u00a0" }));
      button.addEventListener("click", () => {
        state.action = action;
        apply();
      });
      return button;
    };
    $("tiles").append(
      tile("", "Runs", runs, many(calls, "call")),
      ...ACTIONS.map((label, action) => tile(String(action), label, actions[action], share(actions[action], runs))),
      make("div", { class: "tile" }, make("span", { text: "Calls saved" }), make("strong", { text: format(saved) }), make("small", { text: share(saved, calls) || "\u00a0" })),
    );
    for (const [outcome, count, , did, less] of DATA.outcomes) {
      const cells = [count, ...did, less].map((value) => make("td", { text: format(value) }));
      $("outcomes").tBodies[0].append(make("tr", {}, make("th", { scope: "row", text: OUTCOMES[outcome] }), ...cells));
    }
    const fill = (id, entries) => $(id).append(...entries.map(([value, text]) => make("option", { value, text })));
    fill("outcome", [["", "All"], ...DATA.outcomes.map(([name]) => [name, OUTCOMES[name]])]);
    const sources = DATA.sources.map((text, at) => [String(at), text || "(no source)"]);
    fill("source", [["", "All"], ...sources.sort((one, other) => collator.compare(one[1], other[1]))]);
    fill("sort", Object.entries(SORTS).map(([value, [text]]) => [value, text]));
  }

  DATA.runs.forEach((run, at) => { run.at = at; });
  $("main").hidden = false;
  top();
  fromAddress();
  apply();

  for (const name of ["q", "outcome", "source", "sort"]) {
    $(name).addEventListener("input", () => {
      state[name] = $(name).value;
      if (name === "sort") state.order = "";
      apply();
    });
  }
  $("order").addEventListener("click", () => {
    state.order = String(-Number($("order").dataset.way));
    apply();
  });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", (event) => {
    event.preventDefault();
    Object.assign(state, EMPTY);
    apply();
  });
  $("more").addEventListener("click", fillRows);
  document.addEventListener("keydown", (event) => {
    const item = event.target.closest(".run");
    if (event.key === "/" && !event.target.closest("input, select")) {
      event.preventDefault();
      $("q").focus();
    } else if (event.key === "Escape" && item) {
      item.open = false;
      item.firstElementChild.focus();
    } else if (event.target.matches(".run > summary") && /^Arrow(Up|Down)$/.test(event.key)) {
      event.preventDefault();
      if (event.key === "ArrowDown" && !item.nextElementSibling) fillRows();
      (event.key === "ArrowDown" ? item.nextElementSibling : item.previousElementSibling)?.firstElementChild.focus();
    }
  });
  const redraw = () => inView.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("resize", redraw);
  // How long it took until the first rows were on the screen, for whoever measures.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }));
})();
