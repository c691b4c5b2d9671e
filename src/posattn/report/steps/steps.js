// Steps through the rounds of a network. What happened stands in the page as JSON (step_page.cc
// writes it); here it is only shown. Large networks stay quick: rows and arrows are drawn where they
// can be seen.
"use strict";
(() => {
  const walk = JSON.parse(document.getElementById("walk").textContent);
  const element = (id) => document.getElementById(id);
  const stage = element("stage");
  const width = walk.columns.length;
  const lastStep = walk.steps.length - 1;
  const rowHeight = 32; // pixels: the arrows must meet their rows
  const mostArrows = 32; // of one node and bundle, the strongest
  const readsWords = walk.steps.some((step) => step.readings.some((reading) => reading.columns.length));

  let now = 0;
  let selected = -1;
  let shown = walk.columns.map((_, c) => c).filter((c) => width <= 12 || c < 8);
  let visible = { first: 0, end: 0 };
  let timer = 0;

  // Numbers look as C prints %.4g, so that the page and `posattn run --trace` show the same.
  function shortNumber(x) {
    if (typeof x === "string") return x; // "nan", "inf"
    if (x === 0) return "0";
    const [digits, power] = x.toExponential(3).split("e");
    const exponent = Number(power);
    const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent >= -4 && exponent < 4) return trimmed(x.toFixed(3 - exponent));
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return trimmed(digits) + "e" + (exponent < 0 ? "-" : "+") + size;
  }

  function display(column, x) {
    if (column.letters && column.letters[x] !== undefined) return column.letters[x];
    return column.type !== "" && column.type !== "real" ? String(x) : shortNumber(x);
  }

  function create(parent, tag, text = "", kind = "") {
    const made = document.createElement(tag);
    if (text !== "") made.textContent = text;
    if (kind !== "") made.className = kind;
    parent.append(made);
    return made;
  }

  const nodeName = (i) => (i < walk.nodes - walk.scratch ? String(i) : "scratch");
  const value = (step, i, c) => walk.steps[step].values[i * width + c];
  function hasValue(step, i, c) {
    const column = walk.columns[c];
    return step >= column.first && !(column.real && i >= walk.nodes - walk.scratch);
  }

  // [[node, weight], ...] from the flat list of a node.
  function readsOf(reading, i) {
    const reads = [];
    const flat = reading.reads[i];
    for (let k = 0; k < flat.length; k += 2) reads.push([flat[k], flat[k + 1]]);
    return reads;
  }

  function beforeColumn() {
    const first = walk.steps[now].readings.find((reading) => reading.columns.length);
    return first ? first.columns[0] : -1;
  }

  function showStatus() {
    const step = walk.steps[now];
    const status = element("status");
    status.replaceChildren();
    create(status, "strong", `${step.title} (step ${now} of ${lastStep})`);
    for (const note of step.notes) create(status, "span", note);
    element("slider").value = now;
  }

  function showSource() {
    const source = element("source");
    const lines = walk.steps[now].lines;
    [...source.children].forEach((line, k) => {
      const current = lines.includes(k + 1);
      line.classList.toggle("current", current);
      if (current) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    const first = source.querySelector(".current");
    if (!first) return;
    const above = first.offsetTop < source.scrollTop;
    const below = first.offsetTop + first.offsetHeight > source.scrollTop + source.clientHeight;
    if (above || below) source.scrollTop = first.offsetTop - source.clientHeight / 3;
  }

  function showLegend() {
    const legend = element("legend");
    legend.replaceChildren();
    const readings = walk.steps[now].readings;
    readings.slice(0, 8).forEach((reading) => {
      const entry = create(legend, "span");
      create(entry, "span", "", `dot style${reading.style}`).style.marginRight = ".4em";
      entry.append(reading.label);
    });
    if (readings.length > 8) create(legend, "span", `and ${readings.length - 8} more`);
  }

  // A table that is wider than its half of the page gets all of it, below the program's text.
  function layOut() {
    const steps = document.querySelector(".steps");
    steps.classList.remove("stacked");
    steps.classList.toggle("stacked", stage.scrollWidth > stage.clientWidth);
  }

  function layHead() {
    const head = element("head");
    head.replaceChildren();
    create(head, "th", walk.noun);
    if (readsWords) create(head, "th").id = "before";
    create(head, "th", "", "wire").id = "wire";
    for (const c of shown) {
      const column = walk.columns[c];
      const cell = create(head, "th", column.name);
      if (column.type !== "") create(cell, "small", column.type);
    }
  }

  // Rows of the nodes that can be seen, and a few around them.
  function layRows() {
    const seen = Math.ceil(window.innerHeight / rowHeight); // the stage is never higher
    const first = Math.max(0, Math.floor(stage.scrollTop / rowHeight) - 8);
    visible = { first, end: Math.min(walk.nodes, first + seen + 16) };
    const rows = element("rows");
    rows.replaceChildren();
    const gap = (count) => {
      const row = create(rows, "tr", "", "gap");
      create(row, "td").style.height = `${count * rowHeight}px`;
    };
    if (first > 0) gap(first);
    for (let i = first; i < visible.end; ++i) {
      const row = create(rows, "tr");
      row.dataset.node = i;
      const name = create(row, "th");
      name.scope = "row";
      create(name, "button", nodeName(i)).type = "button";
      if (readsWords) create(row, "td", "", "before");
      create(row, "td", "", "wire");
      for (const c of shown) create(row, "td").dataset.column = c;
    }
    if (visible.end < walk.nodes) gap(walk.nodes - visible.end);
    fillRows();
  }

  function fillRows() {
    const before = beforeColumn();
    if (readsWords) {
      element("before").textContent = before < 0 ? "before" : `${walk.columns[before].name} before`;
    }
    for (const row of element("rows").querySelectorAll("tr[data-node]")) {
      const i = Number(row.dataset.node);
      row.classList.toggle("selected", i === selected);
      row.querySelector("button").setAttribute("aria-pressed", String(i === selected));
      const old = row.querySelector(".before");
      if (old) old.textContent = before < 0 ? "" : display(walk.columns[before], value(now - 1, i, before));
      for (const cell of row.querySelectorAll("td[data-column]")) {
        const c = Number(cell.dataset.column);
        const known = hasValue(now, i, c);
        const x = value(now, i, c);
        cell.textContent = known ? display(walk.columns[c], x) : "";
        cell.title = known ? String(x) : "";
        const changed = known && now > 0 && hasValue(now - 1, i, c) && value(now - 1, i, c) !== x;
        cell.classList.toggle("changed", changed);
        const followed = walk.steps[now].followed;
        cell.classList.toggle("followed", Boolean(followed) && followed[0] === i && followed[1] === c);
      }
    }
    drawArrows();
  }

  // One path for all arrows that look the same: of one bundle, as strong, of the chosen node or not.
  function drawArrows() {
    const svg = element("arrows");
    const wire = element("wire");
    const span = wire.offsetWidth;
    svg.style.left = `${wire.offsetLeft}px`;
    svg.style.top = `${element("head").offsetHeight}px`;
    svg.setAttribute("width", span);
    svg.setAttribute("height", walk.nodes * rowHeight);
    const paths = new Map();
    const draw = (key, d) => paths.set(key, (paths.get(key) || "") + d);
    const isSeen = (i) => i >= visible.first && i < visible.end;
    walk.steps[now].readings.forEach((reading, k) => {
      const y = (i) => i * rowHeight + rowHeight / 2 + 3 * k;
      for (let i = 0; i < walk.nodes; ++i) {
        const reads = readsOf(reading, i).slice(0, mostArrows);
        const chosen = selected < 0 || i === selected;
        if (reads.length === 0 && isSeen(i)) {
          draw(`${k} 4 ${chosen}`, `M${span - 8},${y(i)}a3,3 0 1,0 6,0a3,3 0 1,0 -6,0`);
        }
        for (const [j, weight] of reads) {
          if (!isSeen(i) && !isSeen(j)) continue;
          const strength = Math.max(1, Math.min(4, Math.round(4 * Math.abs(weight))));
          draw(
            `${k} ${strength} ${chosen}`,
            `M3,${y(j)}C${span / 2},${y(j)} ${span / 2},${y(i)} ${span - 3},${y(i)}` +
              `m-6,-4l6,4l-6,4`,
          );
        }
      }
    });
    svg.replaceChildren();
    for (const [key, d] of paths) {
      const [k, strength, chosen] = key.split(" ");
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", d);
      path.setAttribute("class", `stroke${walk.steps[now].readings[Number(k)].style}`);
      path.setAttribute("stroke-opacity", (Number(strength) / 4) * (chosen === "true" ? 1 : 0.2));
      svg.append(path);
    }
  }

  function readsText(reading, i) {
    const reads = readsOf(reading, i);
    const few = reads.slice(0, 8);
    if (reading.columns.length === 0) {
      const rest = 1 - few.reduce((sum, [, weight]) => sum + weight, 0);
      const parts = few.map(([j, weight]) => `${nodeName(j)} (${Math.round(100 * weight)} %)`);
      if (rest > 0.005) parts.push(`others (${Math.round(100 * rest)} %)`);
      return [`${reading.names[0]} attends to ${parts.join(", ")}`];
    }
    return reading.names.map((name, k) => {
      const c = reading.columns[k];
      const column = walk.columns[c];
      if (reads.length === 0) return `${name}: reads nothing, a zero`;
      const parts = few.map(([j, weight]) => {
        const factor = weight === 1 ? "" : `${shortNumber(weight)} x `;
        return `${factor}${display(column, value(now - 1, j, c))} (${column.name} of ${nodeName(j)})`;
      });
      const more = reads.length > few.length ? ` + ${reads.length - few.length} more` : "";
      return `${name}: reads ${parts.join(" + ")}${more}`;
    });
  }

  function showDetail() {
    const detail = element("detail");
    detail.replaceChildren();
    if (selected < 0) {
      create(detail, "span", `Choose a ${walk.noun} to see what it reads.`);
      return;
    }
    const readings = walk.steps[now].readings;
    create(detail, "strong", `${walk.noun} ${nodeName(selected)}, ${walk.steps[now].title}`);
    if (readings.length === 0) create(detail, "span", "reads from nobody in this step");
    const texts = readings.flatMap((reading) => readsText(reading, selected));
    for (const text of texts.slice(0, 24)) create(detail, "span", text);
    if (texts.length > 24) create(detail, "span", `and ${texts.length - 24} more`);
    const kept = walk.steps[now].kept;
    if (kept) create(detail, "span", kept[selected]);
  }

  function show() {
    showStatus();
    showSource();
    showLegend();
    fillRows();
    showDetail();
  }

  // The node that carries the followed value is the chosen one, and in sight.
  function follow() {
    const followed = walk.steps[now].followed;
    if (!followed) return;
    selected = followed[0];
    if (!shown.includes(followed[1])) {
      shown = [...shown, followed[1]].sort((a, b) => a - b);
      layHead();
      layRows();
    }
    const top = followed[0] * rowHeight;
    if (top < stage.scrollTop || top + 2 * rowHeight > stage.scrollTop + stage.clientHeight) {
      stage.scrollTop = Math.max(0, top - stage.clientHeight / 2);
      layRows();
    }
  }

  function go(step) {
    now = Math.max(0, Math.min(lastStep, step));
    follow();
    if (now === lastStep) stop();
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    element("play").textContent = "Play";
  }

  function play() {
    if (timer) return stop();
    if (now === lastStep) go(0);
    if (lastStep === 0) return;
    element("play").textContent = "Pause";
    timer = setInterval(() => go(now + 1), 1000);
  }

  // By hand: what plays stops.
  function step(to) {
    stop();
    go(to);
  }

  function showChoice() {
    element("chosen").textContent = `Columns: ${shown.length} of ${width} are shown`;
  }

  function makeChooser() {
    element("chooser").hidden = width < 2;
    walk.columns.forEach((column, c) => {
      const label = create(element("choices"), "label");
      const box = create(label, "input");
      box.type = "checkbox";
      box.checked = shown.includes(c);
      label.append(column.name);
      box.addEventListener("change", () => {
        shown = walk.columns.map((_, k) => k).filter((k) => (k === c ? box.checked : shown.includes(k)));
        showChoice();
        layHead();
        layRows();
        layOut();
      });
    });
    showChoice();
  }

  function listen() {
    const on = (id, action) => element(id).addEventListener("click", action);
    on("first", () => step(0));
    on("back", () => step(now - 1));
    on("play", play);
    on("next", () => step(now + 1));
    on("last", () => step(lastStep));
    element("slider").max = lastStep;
    element("slider").addEventListener("input", () => step(Number(element("slider").value)));
    element("rows").addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-node]");
      if (!row) return;
      const node = Number(row.dataset.node);
      selected = node === selected ? -1 : node;
      fillRows();
      showDetail();
    });
    let asked = false; // one new drawing a frame
    const draw = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        layOut();
        layRows();
      });
    };
    stage.addEventListener("scroll", () => {
      const first = Math.floor(stage.scrollTop / rowHeight);
      const end = Math.ceil((stage.scrollTop + stage.clientHeight) / rowHeight);
      if (first < visible.first || Math.min(end, walk.nodes) > visible.end) draw();
    });
    window.addEventListener("resize", draw);
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.target.closest("input")) return; // it has a use for them itself
      const steps = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: lastStep };
      if (event.key in steps) step(steps[event.key]);
      else if (event.key === " " && !event.target.closest("button, summary")) play();
      else return;
      event.preventDefault();
    });
    listenToTouch();
  }

  function listenToTouch() {
    let start = null;
    document.addEventListener(
      "touchstart",
      (event) => {
        const wide = event.target.closest("#stage, #source");
        const scrolls = wide && wide.scrollWidth > wide.clientWidth; // then a swipe is for it
        const free = event.touches.length === 1 && !scrolls && !event.target.closest("input");
        start = free ? event.touches[0] : null;
      },
      { passive: true },
    );
    document.addEventListener("touchend", (event) => {
      if (!start) return;
      const end = event.changedTouches[0];
      const across = end.clientX - start.clientX;
      const down = end.clientY - start.clientY;
      start = null;
      if (Math.abs(across) > 40 && Math.abs(across) > 2 * Math.abs(down)) step(now - Math.sign(across));
    });
  }

  stage.style.setProperty("--row", `${rowHeight}px`);
  if (walk.source.length === 0) document.querySelector(".steps").classList.add("alone");
  for (const line of walk.source) create(element("source"), "li", line);
  makeChooser();
  listen();
  layHead();
  layRows();
  follow();
  show();
  layOut();
  layRows();
})();
