// Draws the report out of the JSON in #data. Text reaches the page through textContent only, so
// nothing in a run can become markup; the page's policy also forbids it to be parsed as such.
"use strict";

(() => {
  const DATA = JSON.parse(document.getElementById("data").textContent);
  const ACTIONS = ["Quiet", "Warned", "Asked", "Stopped"];
  const DID = ["said nothing", "warned", "asked", "stopped"];
  const OUTCOMES = ["success", "fail", "unknown"];
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const COLOURS = 8;
  const ROWS = 150; // Rows added at once: more than two screens, little enough to be instant.
  const CELLS = 600; // Calls of an open timeline shown at once.
  const FINDINGS = 6; // Findings of an open run shown at once.
  const SORTS = {
    saved: ["Calls saved", (run) => run.d, -1],
    action: ["Guard", (run) => run.a, -1],
    outcome: ["Outcome", (run) => OUTCOMES.indexOf(run.o), 1],
    source: ["Source", (run) => DATA.sources[run.s], 1],
    calls: ["Calls", (run) => run.n, -1],
    id: ["Id", (run) => run.i, 1],
    read: ["Order read", (run) => run.at, 1],
  };
  const ANSWERS = {
    n: "a new answer",
    e: "an answer it had got before",
    x: "failed, with a new answer",
    y: "failed as before",
    m: "no answer recorded",
    r: "refused, did not run",
  };

  const $ = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en");
  const collator = new Intl.Collator("en", { numeric: true });
  const times = (count) => (count === 1 ? "once" : count === 2 ? "twice" : `${number.format(count)} times`);
  const many = (count, word) => `${number.format(count)} ${word}${count === 1 ? "" : "s"}`;

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

  // ---- theme -------------------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  let ink = {};
  try {
    theme = localStorage.getItem("loopguard-theme") || "auto";
  } catch {
    // A page opened from a file may have no storage.
  }

  function applyTheme() {
    const shown = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    document.documentElement.dataset.theme = shown;
    $("theme").textContent = `Theme: ${theme}`;
    const style = getComputedStyle(document.documentElement);
    const names = ["ink", "soft", "card", "once", "once-line", "on", "warn", "ask", "stop", "shade", "shade-line"];
    ink = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    ink.g = Array.from({ length: COLOURS }, (_, at) => style.getPropertyValue(`--g${at}`).trim());
    ink.flags = [ink.soft, ink.warn, ink.ask, ink.stop];
    for (const canvas of inView) draw(canvas);
  }

  // ---- one run's timeline ------------------------------------------------------------------

  // Works out once what the drawings share: which calls are repeated, and what each call's
  // batch was told.
  function lay(run) {
    if (run.cells) return run;
    const counts = new Array(run.g.length).fill(0);
    for (const signature of run.c) counts[signature] += 1;
    run.times = counts;
    run.repeated = counts
      .map((count, signature) => [count, signature])
      .filter(([count]) => count > 1)
      .sort((one, other) => other[0] - one[0] || one[1] - other[1])
      .map(([, signature]) => signature);
    run.rank = new Array(run.g.length).fill(-1);
    run.repeated.forEach((signature, rank) => { run.rank[signature] = rank; });
    const turns = new Set(run.t);
    run.cells = [];
    for (let batch = 0; batch < run.m.length; batch += 1) {
      const size = run.z ? run.z[batch] : 1;
      for (let place = 0; place < size; place += 1) {
        run.cells.push({ batch, place, size, turn: place === 0 && turns.has(batch), action: Number(run.m[batch]) });
      }
    }
    return run;
  }

  const letter = (run, signature) => (run.rank[signature] < 0 ? "" : LETTERS[run.rank[signature]] || "+");
  const tool = (run, signature) => DATA.tools[run.g[signature]];

  function flag(pen, action, x) {
    pen.fillStyle = ink.flags[action];
    pen.beginPath();
    if (action === 1) {
      pen.moveTo(x + 4, 0); pen.lineTo(x + 8, 8); pen.lineTo(x, 8);
    } else if (action === 2) {
      pen.moveTo(x, 0); pen.lineTo(x + 8, 2.6); pen.lineTo(x + 2, 5.2); pen.lineTo(x + 2, 9); pen.lineTo(x, 9);
    } else {
      pen.rect(x, 0.5, 8, 8);
    }
    pen.fill();
  }

  function draw(canvas) {
    const run = lay(shown[canvas.dataset.at]);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const calls = run.cells.length;
    if (!calls) return;
    const turns = run.t.length;
    const roomy = (width - turns * 7) / calls >= 4;
    const unit = Math.min(14, (width - (roomy ? turns * 7 : 0) - 9) / calls);
    const gap = unit >= 9 ? 2 : unit >= 4 ? 1 : 0;
    const places = new Float64Array(calls + 1);
    let x = 0;
    run.cells.forEach((cell, at) => {
      if (cell.turn && roomy) x += 7;
      places[at] = x;
      x += unit;
    });
    places[calls] = x;
    if (run.h) {
      const from = places[run.h[1] - 1];
      pen.fillStyle = ink.shade;
      pen.fillRect(from - 1, 10, x - from + 1, height - 10);
      pen.fillStyle = ink["shade-line"];
      pen.fillRect(from - 1.5, 10, 1.5, height - 10);
    }
    pen.font = "600 10px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const begun = [false, false, false, false];
    let free = -1;
    run.cells.forEach((cell, at) => {
      const left = places[at];
      const joined = cell.place < cell.size - 1;
      const wide = Math.max(unit - (joined ? 0 : gap), 0.6);
      const rank = run.rank[run.c[at]];
      const answer = run.r[at];
      if (cell.turn && roomy) {
        pen.fillStyle = ink.soft;
        pen.fillRect(left - 5, 12, 1.5, 20);
      }
      if (answer === "r") {
        pen.strokeStyle = ink.soft;
        pen.lineWidth = 1;
        pen.strokeRect(left + 0.5, 11.5, Math.max(wide - 1, 0.5), 13);
        pen.beginPath(); pen.moveTo(left, 25); pen.lineTo(left + wide, 11); pen.stroke();
      } else {
        pen.fillStyle = rank < 0 ? ink["once"] : ink.g[rank % COLOURS];
        pen.fillRect(left, 11, wide, 14);
        if (rank < 0 && unit >= 4) {
          pen.strokeStyle = ink["once-line"];
          pen.lineWidth = 1;
          pen.strokeRect(left + 0.5, 11.5, wide - 1, 13);
        }
        if (rank >= 0 && unit >= 10) {
          pen.fillStyle = ink.on;
          pen.fillText(letter(run, run.c[at]), left + wide / 2, 18.5);
        }
      }
      if (answer === "e" || answer === "y") {
        pen.fillStyle = ink.ink;
        pen.fillRect(left, 29, wide, 2);
      }
      if (answer === "x" || answer === "y") {
        pen.fillStyle = ink.ask;
        if (unit >= 8) {
          const middle = left + wide / 2;
          pen.strokeStyle = ink.ask;
          pen.lineWidth = 1.6;
          pen.beginPath();
          pen.moveTo(middle - 2.5, 27.5); pen.lineTo(middle + 2.5, 32.5);
          pen.moveTo(middle + 2.5, 27.5); pen.lineTo(middle - 2.5, 32.5);
          pen.stroke();
        } else {
          pen.fillRect(left, 27, Math.max(wide * 0.6, 0.6), 6);
        }
      }
      if (answer === "m") {
        pen.fillStyle = ink.soft;
        pen.fillRect(left + wide / 2 - 0.7, 29.5, 1.4, 1.4);
      }
      if (cell.action && cell.place === 0) {
        pen.fillStyle = ink.flags[cell.action];
        pen.fillRect(left, cell.action === 1 ? 6.5 : 5, places[at + cell.size] - left, cell.action === 1 ? 1.5 : 3);
        if (!begun[cell.action] && left >= free) {
          begun[cell.action] = true;
          pen.clearRect(left - 1, 0, 11, 10);
          flag(pen, cell.action, left);
          free = left + 9;
        }
      }
    });
  }

  // Canvases cost memory, so only those near the window have one.
  const inView = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        inView.add(target);
        draw(target);
      } else if (inView.delete(target)) {
        target.width = target.height = 0;
      }
    }
  }, { rootMargin: "300px 0px" });

  // ---- a row -------------------------------------------------------------------------------

  function first(run) {
    const found = run.x && (!run.k || run.x[1] < run.k[1]) ? run.x : run.k;
    if (run.a === 0) return `${many(run.n, "call")}`;
    const [, call] = run.a === 1 ? run.w : found;
    return `${DID[run.a === 3 && found === run.k ? 2 : run.a]} at call ${number.format(call)} of ${number.format(run.n)}`;
  }

  function told(run) {
    const parts = [];
    if (run.a === 0) parts.push("the guard said nothing");
    if (run.w) parts.push(`warned at call ${run.w[1]}`);
    if (run.k) parts.push(`asked at call ${run.k[1]}`);
    if (run.x) parts.push(`stopped at call ${run.x[1]}`);
    return `Timeline of ${many(run.n, "call")}: ${parts.join(", ")}.`;
  }

  // Of a path, its end tells files apart.
  function brief(source) {
    const parts = source.split("/");
    return parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : source || "(no source)";
  }

  function row(run, at) {
    const head = make(
      "button",
      { type: "button", class: "head", "aria-expanded": "false", "aria-controls": `open-${run.at}`, tabindex: "-1" },
      make("span", { class: `chip a${run.a}`, text: ACTIONS[run.a] }),
      make(
        "span",
        { class: "who" },
        make("bdi", { text: run.i || "(no id)", title: run.i }),
        make("small", {}, `${run.o} · ${run.l ? `labelled ${run.l} · ` : ""}`, make("bdi", { text: brief(DATA.sources[run.s]), title: DATA.sources[run.s] })),
      ),
    );
    const saved = make("span", { class: "saved" });
    if (run.d) saved.append(make("b", { text: number.format(run.d) }), make("small", { text: " saved" }));
    const line = make(
      "div",
      { class: "line" },
      head,
      make("canvas", { class: "strip", role: "img", "aria-label": told(run), "data-at": at }),
      make("span", { class: "end" }, make("small", { text: first(run) }), saved),
    );
    const item = make("li", { class: "run", "data-at": at }, line);
    line.addEventListener("click", (event) => {
      if (event.target.closest(".line") === line) toggle(item);
    });
    watch.observe(line.querySelector("canvas"));
    return item;
  }

  function toggle(item) {
    const head = item.querySelector(".head");
    const wanted = head.getAttribute("aria-expanded") !== "true";
    head.setAttribute("aria-expanded", String(wanted));
    const old = item.querySelector(".open");
    if (old) old.remove();
    if (wanted) item.append(details(lay(shown[item.dataset.at])));
    settle(item, false);
  }

  // ---- an open run -------------------------------------------------------------------------

  function describe(run, at) {
    const cell = run.cells[at];
    const signature = run.c[at];
    const parts = [`Call ${at + 1}`];
    parts.push(cell.size > 1 ? `batch ${cell.batch + 1}, ${cell.place + 1} of ${cell.size} at once` : `batch ${cell.batch + 1}`);
    parts.push(tool(run, signature));
    const mark = letter(run, signature);
    parts.push(mark ? `call ${mark}, made ${times(run.times[signature])}` : "made once");
    parts.push(ANSWERS[run.r[at]]);
    if (cell.action) parts.push(`the guard ${DID[cell.action]}`);
    if (run.h && at + 1 >= run.h[1]) parts.push("would have been spared");
    return parts.join(" · ");
  }

  function timeline(run) {
    const box = make("div", {
      class: "calls", tabindex: "0", role: "listbox", "aria-label": `Calls of run ${run.i}`, "aria-orientation": "horizontal",
    });
    const info = make("div", { class: "at quiet", text: "Choose a call to read about it." });
    const pages = Math.ceil(run.cells.length / CELLS);
    let page = 0;
    let here = -1;

    function fill() {
      const parts = [];
      const end = Math.min(run.cells.length, (page + 1) * CELLS);
      for (let at = page * CELLS; at < end; at += 1) {
        const cell = run.cells[at];
        const rank = run.rank[run.c[at]];
        const answer = run.r[at];
        const marks = ["c"];
        if (rank >= 0) marks.push(`g${rank % COLOURS}`);
        if (answer === "e" || answer === "y") marks.push("eq");
        if (answer === "x" || answer === "y") marks.push("er");
        if (answer === "m") marks.push("no");
        if (answer === "r") marks.push("rf");
        if (cell.action && cell.place === 0) marks.push(`f${cell.action}`);
        if (cell.place > 0) marks.push("with");
        if (run.h && at + 1 >= run.h[1]) marks.push("off");
        if (cell.turn) parts.push(make("span", { class: "turn", "aria-hidden": "true", title: "A person spoke" }));
        const text = describe(run, at);
        parts.push(make(
          "span",
          { class: marks.join(" "), role: "option", id: `call-${run.at}-${at}`, "aria-label": text, "aria-selected": "false", title: text, "data-call": at },
          make("b", { text: letter(run, run.c[at]) }),
        ));
      }
      box.replaceChildren(...parts);
    }

    function choose(at) {
      const target = Math.max(0, Math.min(run.cells.length - 1, at));
      if (Math.floor(target / CELLS) !== page) {
        page = Math.floor(target / CELLS);
        fill();
        told();
      }
      here = target;
      for (const cell of box.querySelectorAll(".here, .same")) {
        cell.classList.remove("here", "same");
        cell.setAttribute("aria-selected", "false");
      }
      const cell = $(`call-${run.at}-${here}`);
      cell.classList.add("here");
      cell.setAttribute("aria-selected", "true");
      box.setAttribute("aria-activedescendant", cell.id);
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
      for (let other = page * CELLS; other < Math.min(run.cells.length, (page + 1) * CELLS); other += 1) {
        if (other !== here && run.c[other] === run.c[here] && run.times[run.c[here]] > 1) {
          $(`call-${run.at}-${other}`).classList.add("same");
        }
      }
      info.className = "at";
      info.replaceChildren(make("span", { text: describe(run, here) }));
      if (run.p) {
        info.append(
          make("pre", { text: run.p[run.c[here]], "aria-label": "Arguments" }),
          make("pre", { text: run.q[here] < 0 ? "(no answer recorded)" : run.y[run.q[here]], "aria-label": "Answer" }),
        );
      }
    }

    function equal(step) {
      for (let at = here + step; at >= 0 && at < run.c.length; at += step) {
        if (run.c[at] === run.c[here]) return at;
      }
      return here;
    }

    box.addEventListener("click", (event) => {
      const cell = event.target.closest(".c");
      if (cell) choose(Number(cell.dataset.call));
    });
    box.addEventListener("keydown", (event) => {
      const go = {
        ArrowRight: () => here + 1,
        ArrowLeft: () => here - 1,
        ArrowDown: () => (here < 0 ? 0 : equal(1)),
        ArrowUp: () => (here < 0 ? 0 : equal(-1)),
        Home: () => 0,
        End: () => run.cells.length - 1,
        PageDown: () => here + 20,
        PageUp: () => here - 20,
      }[event.key];
      if (!go || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      choose(go());
    });

    const pager = make("div", { class: "pager" });
    const where = make("span", { class: "quiet" });
    function told() {
      where.textContent = `Calls ${number.format(page * CELLS + 1)} to ${number.format(Math.min(run.cells.length, (page + 1) * CELLS))} of ${number.format(run.cells.length)}`;
    }
    if (pages > 1) {
      for (const [text, step] of [["Earlier calls", -1], ["Later calls", 1]]) {
        const button = make("button", { type: "button", class: "plain", text });
        button.addEventListener("click", () => {
          page = Math.max(0, Math.min(pages - 1, page + step));
          fill();
          told();
        });
        pager.append(button);
      }
      told();
      pager.append(where);
    }
    fill();
    return make("div", { class: "full" }, make("h3", { text: "Calls" }), box, ...(pages > 1 ? [pager] : []), info);
  }

  function facts(run) {
    const list = make("dl", { class: "facts" });
    const add = (name, text) => list.append(make("dt", { text: name }), make("dd", { text }));
    const place = ([batch, call, before]) =>
      `call ${number.format(call)}${batch === call ? "" : `, batch ${number.format(batch)}`}, ${before ? "before it ran" : "by its answer"}`;
    add("Size", `${many(run.n, "call")} in ${run.b === 1 ? "1 batch" : `${number.format(run.b)} batches`}, ${many(run.u, "user turn")}`);
    if (run.c.length < run.n) add("Ended", `at call ${number.format(run.c.length)}: the calls recorded after it are not drawn`);
    add("First warning", run.w ? place(run.w) : "none");
    add("First ask", run.k ? place(run.k) : "none");
    if (run.x) add("First stop", place(run.x));
    if (run.k || run.x) {
      add("Held back", run.h ? `from call ${number.format(run.h[1])} on: ${many(run.d, "call")} of ${number.format(run.n)} saved` : "nothing, the loop ended by itself");
    }
    return make("div", {}, make("h3", { text: "What the guard did" }), list);
  }

  function findings(run) {
    const list = (some) => make("ul", { class: "found" }, ...some.map(([rule, action, from, to, count, text]) => {
      const span = from === to ? `batch ${number.format(from)}` : `batches ${number.format(from)} to ${number.format(to)}, ${times(count)}`;
      return make(
        "li",
        {},
        make("span", { class: `chip a${action}`, text: ACTIONS[action] }),
        make("span", {}, make("span", { text }), make("small", { text: `${rule} · ${span}` })),
      );
    }));
    const box = make("div", {}, make("h3", { text: "Findings" }));
    box.append(run.f.length ? list(run.f.slice(0, FINDINGS)) : make("p", { class: "quiet", text: "None." }));
    const rest = run.f.slice(FINDINGS);
    if (rest.length) box.append(make("details", { class: "rest" }, make("summary", { text: `${many(rest.length, "more finding")}` }), list(rest)));
    return box;
  }

  function repeated(run) {
    if (!run.repeated.length) return make("p", { class: "quiet", text: "No call was made twice." });
    const equal = new Array(run.g.length).fill(0);
    run.c.forEach((signature, at) => {
      if (run.r[at] === "e" || run.r[at] === "y") equal[signature] += 1;
    });
    const body = make("tbody");
    for (const signature of run.repeated.slice(0, 12)) {
      body.append(make(
        "tr",
        {},
        make("td", { class: "l" }, make("span", { class: `c g${run.rank[signature] % COLOURS}` }, make("b", { text: letter(run, signature) }))),
        make("td", { class: "l" }, make("bdi", { text: tool(run, signature) })),
        make("td", { text: number.format(run.times[signature]) }),
        make("td", { text: number.format(equal[signature]) }),
      ));
    }
    const heads = ["Call", "Tool", "Made", "Known answers"];
    const table = make(
      "table",
      { class: "repeated" },
      make("thead", {}, make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", text, class: at < 2 ? "l" : "" })))),
      body,
    );
    const left = run.repeated.length - 12;
    return make("div", {}, make("h3", { text: "Repeated calls" }), table, ...(left > 0 ? [make("p", { class: "quiet", text: `and ${number.format(left)} more` })] : []));
  }

  function details(run) {
    return make(
      "div",
      { class: "open", id: `open-${run.at}`, role: "group", "aria-label": `Run ${run.i}` },
      ...(run.n ? [timeline(run)] : []),
      make("div", { class: "side" }, facts(run), repeated(run)),
      findings(run),
    );
  }

  // ---- filter, sort, show ------------------------------------------------------------------

  const state = { q: "", action: "", outcome: "", source: "", saved: "", sort: "saved", order: "" };
  let shown = [];
  let filled = 0;

  const direction = () => (state.order ? Number(state.order) : SORTS[state.sort][2]);

  function hay(run) {
    if (run.hay === undefined) {
      run.hay = [run.i, ...new Set(run.g.map((at) => DATA.tools[at]))].join("\n").toLowerCase();
    }
    return run.hay;
  }

  function apply() {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const least = Number(state.saved) || 0;
    shown = DATA.runs.filter((run) =>
      (state.action === "" || run.a === Number(state.action))
      && (state.outcome === "" || run.o === state.outcome)
      && (state.source === "" || run.s === Number(state.source))
      && run.d >= least
      && words.every((word) => hay(run).includes(word)));
    const [, key] = SORTS[state.sort];
    const sign = direction();
    const compare = (one, other) => (typeof one === "number" ? one - other : collator.compare(one, other));
    shown.sort((one, other) => sign * compare(key(one), key(other)) || other.a - one.a || other.d - one.d || one.at - other.at);
    for (const canvas of $("runs").querySelectorAll("canvas")) watch.unobserve(canvas);
    inView.clear();
    $("runs").replaceChildren();
    filled = 0;
    fillRows();
    let calls = 0;
    let saved = 0;
    for (const run of shown) {
      calls += run.n;
      saved += run.d;
    }
    $("status").textContent = shown.length
      ? `${many(shown.length, "run")} of ${number.format(DATA.runs.length)}, ${many(calls, "call")}, ${number.format(saved)} of them saved.`
      : "No run fits. Clear the filters to see all.";
    controls();
  }

  function fillRows(count = ROWS) {
    const end = Math.min(shown.length, filled + count);
    const rows = document.createDocumentFragment();
    for (let at = filled; at < end; at += 1) rows.append(row(shown[at], at));
    const was = filled;
    filled = end;
    $("runs").append(rows);
    if (was === 0 && end) settle($("runs").firstElementChild, false);
    $("more").hidden = filled >= shown.length;
  }

  // One row at a time is in the tab order; the arrow keys move on from there.
  function settle(item, focus) {
    for (const head of $("runs").querySelectorAll('.head[tabindex="0"]')) head.tabIndex = -1;
    const head = item.querySelector(".head");
    head.tabIndex = 0;
    if (focus) {
      head.focus();
      item.scrollIntoView({ block: "nearest" });
    }
  }

  function walk(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const item = event.target.closest(".run");
    if (!item) return;
    if (event.key === "Escape" && item.querySelector(".open")) {
      toggle(item);
      settle(item, true);
      return;
    }
    if (!event.target.closest(".head")) return;
    const at = Number(item.dataset.at);
    const go = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1, PageDown: at + 10, PageUp: at - 10 }[event.key];
    if (go === undefined) return;
    event.preventDefault();
    const target = Math.max(0, Math.min(shown.length - 1, go));
    if (target >= filled) fillRows(target - filled + ROWS);
    settle($("runs").children[target], true);
  }

  function controls() {
    for (const name of ["q", "action", "outcome", "source", "saved", "sort"]) {
      if ($(name).value !== state[name]) $(name).value = state[name];
    }
    const down = direction() < 0;
    $("order").textContent = down ? "Largest first ↓" : "Smallest first ↑";
    for (const tile of $("tiles").querySelectorAll("button")) {
      tile.setAttribute("aria-pressed", String(tile.dataset.action === state.action));
    }
    const kept = Object.entries(state).filter(([name, value]) => value !== "" && !(name === "sort" && value === "saved"));
    try {
      history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : location.pathname + location.search);
    } catch {
      // Some viewers don't let a page name its own address.
    }
  }

  function fromAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(state)) {
      if (given.has(name)) state[name] = given.get(name);
    }
    if (!Object.hasOwn(SORTS, state.sort)) state.sort = "saved";
    if (!["", "1", "-1"].includes(state.order)) state.order = "";
    for (const name of ["action", "outcome", "source"]) {
      if (![...$(name).options].some((option) => option.value === state[name])) state[name] = "";
    }
  }

  // ---- the top -----------------------------------------------------------------------------

  function share(part, whole) {
    if (!whole || !part) return "";
    const percent = (100 * part) / whole;
    return percent < 0.1 ? "under 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
  }

  function top() {
    const { counts } = DATA;
    $("about").append(`Policy ${DATA.policy} on ${many(counts.runs, "run")} of ${many(DATA.sources.length, "source")}. `,
      DATA.content ? "Arguments and answers are shown; known secret shapes are masked." : "Arguments and answers are not in this page.");
    const notices = [];
    if (counts.bad) notices.push(`${many(counts.bad, "input")} could not be read and ${counts.bad === 1 ? "is" : "are"} missing here.`);
    if (DATA.runs.length < counts.runs) notices.push(`The list holds ${number.format(DATA.runs.length)} of ${number.format(counts.runs)} runs, those with the most to tell; the counts are of all.`);
    $("notice").textContent = notices.join(" ");
    $("notice").hidden = !notices.length;
    const tile = (action, label, count, note) => {
      const dot = action === "" ? [] : [make("span", { class: `dot a${action}`, "aria-hidden": "true" })];
      const button = make(
        "button",
        { type: "button", class: "tile", "data-action": action, "aria-pressed": "false" },
        make("span", { class: "label" }, ...dot, label),
        make("strong", { text: number.format(count) }),
        make("small", { text: note || " " }),
      );
      button.addEventListener("click", () => {
        state.action = action;
        apply();
      });
      return button;
    };
    $("tiles").append(
      tile("", "Runs", counts.runs, many(counts.calls, "call")),
      ...[0, 1, 2, 3].map((action) => tile(String(action), ACTIONS[action], counts.actions[action], share(counts.actions[action], counts.runs))),
      make(
        "div",
        { class: "tile" },
        make("span", { class: "label", text: "Calls saved" }),
        make("strong", { text: number.format(counts.saved) }),
        make("small", { text: share(counts.saved, counts.calls) ? `${share(counts.saved, counts.calls)} of calls` : " " }),
      ),
    );
    const names = ["Runs", ...ACTIONS, "Calls saved"];
    for (const [outcome, runs, actions, saved] of DATA.outcomes) {
      const line = make("tr", {}, make("th", { scope: "row", text: outcome }));
      [runs, ...actions, saved].forEach((count, at) => {
        const cell = make("td", { "data-name": names[at], class: count ? "" : "zero", text: number.format(count) });
        if (at > 0 && at < 5 && count) cell.append(make("small", { text: ` ${share(count, runs)}` }));
        line.append(cell);
      });
      $("outcomes").tBodies[0].append(line);
    }
  }

  function fillSelects() {
    const fill = (id, entries) => $(id).append(...entries.map(([value, text]) => make("option", { value, text })));
    fill("action", [["", "All"], ...ACTIONS.map((text, at) => [String(at), text])]);
    fill("outcome", [["", "All"], ...DATA.outcomes.map(([name]) => [name, name])]);
    const sources = DATA.sources.map((text, at) => [String(at), text || "(no source)"]);
    fill("source", [["", "All"], ...sources.sort((one, other) => collator.compare(one[1], other[1]))]);
    fill("sort", Object.entries(SORTS).map(([value, [text]]) => [value, text]));
  }

  DATA.runs.forEach((run, at) => { run.at = at; });
  $("main").hidden = false;
  // On a small screen the filters would push the runs out of sight.
  if (matchMedia("(max-width: 620px)").matches) $("fold").open = false;
  applyTheme();
  top();
  fillSelects();
  fromAddress();
  apply();

  dark.addEventListener("change", applyTheme);
  $("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme] || "auto";
    try {
      localStorage.setItem("loopguard-theme", theme);
    } catch {
      // As above.
    }
    applyTheme();
  });
  for (const name of ["q", "saved", "action", "outcome", "source", "sort"]) {
    $(name).addEventListener("input", () => {
      state[name] = $(name).value;
      if (name === "sort") state.order = "";
      apply();
    });
  }
  $("order").addEventListener("click", () => {
    state.order = String(-direction());
    apply();
  });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("reset").addEventListener("click", (event) => {
    event.preventDefault();
    Object.assign(state, { q: "", action: "", outcome: "", source: "", saved: "", sort: "saved", order: "" });
    apply();
  });
  $("runs").addEventListener("keydown", walk);
  $("more").firstElementChild.addEventListener("click", () => fillRows());
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) fillRows();
  }, { rootMargin: "800px 0px" }).observe($("more"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea")) {
      event.preventDefault();
      $("fold").open = true;
      $("q").focus();
    }
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    for (const canvas of inView) draw(canvas);
  });
  // How long it took until the first rows were on the screen, for whoever measures.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  }));
})();
