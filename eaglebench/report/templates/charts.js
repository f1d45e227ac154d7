// Charts. Each one is drawn again from the data when a choice, the theme or the medium changes.
const startCharts = () => {
  "use strict";
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const element = (name) => document.querySelector(`[data-chart="${name}"]`);
  const remark = (name, text) => {
    document.querySelector(`[data-remark="${name}"]`).textContent = text;
  };
  if (!window.Plotly) {
    for (const chart of document.querySelectorAll(".chart")) chart.textContent = "The chart library did not load.";
    return;
  }

  const isTouch = matchMedia("(pointer: coarse)").matches;
  const isWide = () => root.clientWidth > 600;
  let isPrinting = false;
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const PALETTE = 6;
  const armColor = (arm) => {
    if (data.arms[arm] === data.baseline) return style("--base");
    const others = data.arms.filter((name) => name !== data.baseline);
    return style(`--arm-${others.indexOf(data.arms[arm]) % PALETTE}`);
  };
  // Plotly reads some markup in texts, so a name's own signs are written as entities.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const percent = (share, digits = 2) => `${share > 0 ? "+" : ""}${(100 * share).toFixed(digits)}%`;
  const fixed = (value, digits) => (value === null ? "-" : value.toFixed(digits));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const sharedText = () => (data.shared ? `All cells: ${data.shared}.` : "");
  const cutText = (count, what) => (count ? `${count} ${what} are left out.` : "");

  // Paper: two small charts or one tall one fit a landscape page.
  const PRINT_WIDTH = 980;
  const PRINT_HEIGHT = 600;
  const PRINT_HEIGHT_SMALL = 240;
  const axis = (title, more = {}) => ({
    title: { text: title, standoff: 8 }, gridcolor: style("--line"), zerolinecolor: style("--quiet"),
    linecolor: style("--line"), automargin: true, fixedrange: isTouch, ...more,
  });
  const draw = (name, traces, layout, label) => {
    const chart = element(name);
    if (!traces.length) {
      Plotly.purge(chart);
      chart.textContent = "Nothing to draw.";
      chart.dataset.empty = "yes";
      return;
    }
    if (chart.dataset.empty) {
      chart.textContent = "";
      delete chart.dataset.empty;
    }
    chart.setAttribute("aria-label", label);
    const height = layout.height ?? 320;
    const printed = layout.height ? Math.min(height, PRINT_HEIGHT) : PRINT_HEIGHT_SMALL;
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: style("--text"), size: 12, family: "system-ui, sans-serif" },
      margin: { l: 50, r: 12, t: 34, b: 44 }, bargap: 0.25, hovermode: "closest",
      dragmode: isTouch ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--quiet"), activecolor: style("--link") },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", xanchor: "left" },
      hoverlabel: { bgcolor: style("--raised"), bordercolor: style("--line"), font: { color: style("--text") } },
      ...layout,
      height: isPrinting ? printed : height,
      ...(isPrinting ? { width: PRINT_WIDTH, autosize: false } : { width: undefined, autosize: true }),
    };
    Plotly.react(chart, traces, base, {
      responsive: true, displaylogo: false, displayModeBar: matchMedia("(hover: hover)").matches,
      modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    });
  };

  const addSelect = (place, label, options, changed) => {
    const wrap = document.createElement("label");
    const select = document.createElement("select");
    wrap.append(label, select);
    for (const [value, text] of options) select.add(new Option(text, value));
    select.addEventListener("change", changed);
    place.append(wrap);
    return select;
  };
  const controls = (name) => document.querySelector(`[data-controls="${name}"]`);
  const others = data.arms.map((name, arm) => [arm, name]).filter(([, name]) => name !== data.baseline);
  const baseline = data.arms.indexOf(data.baseline);
  const heldAgainst = data.held ? "the baseline" : data.baseline;

  const rowsOf = (cell) => data.rows.filter((row) => row.c === cell);
  const cellChoice = addSelect(
    document.getElementById("chart-choice"), "cell of the next three charts",
    data.cells.map((name, cell) => [cell, name]), () => drawCell(),
  );
  const armChoice = addSelect(
    controls("questions"), `arm against ${heldAgainst}`, others, () => drawQuestions(),
  );
  const measureChoice = addSelect(
    controls("matrix"), "show",
    [["al", "acceptance length"], ["ch", `acceptance length against ${data.baseline}`], ["ts", "token/s"]],
    () => drawMatrix(),
  );
  const sweepChoice = data.sweeps.length && addSelect(
    controls("sweep"), "cells", data.sweeps.map(({ n }, index) => [index, n]), () => drawSweep(),
  );
  const SPLITS_AT_ONCE = 24;
  const splitChoice = addSelect(
    controls("split"), "arm", [["", "all arms"], ...others], () => drawSplit(),
  );
  if (data.splits.length > SPLITS_AT_ONCE && others.length) splitChoice.value = others[0][0];

  const drawPositions = () => {
    const cell = Number(cellChoice.value);
    const rows = rowsOf(cell).filter((row) => row.p.length);
    const hasRoom = element("positions").clientWidth / sum([0, ...rows.map((row) => row.p.length)]) > 70;
    const traces = rows.map((row) => ({
      type: "bar", name: plain(data.arms[row.a]), marker: { color: armColor(row.a) },
      x: row.p.map((_, index) => `draft ${index + 1}`), y: row.p,
      text: row.p.map((share) => share.toFixed(3)),
      textposition: hasRoom ? "outside" : "none", textangle: 0, cliponaxis: false,
      hovertemplate: "%{x}: %{text}",
    }));
    draw("positions", traces, {
      showlegend: true, barmode: "group", xaxis: axis("", { type: "category" }),
      yaxis: axis("share of verify steps", { range: [0, 1.06], dtick: 0.2, tickformat: ".0%" }),
    }, `Bars: share of verify steps that accepted each draft position, by arm, cell ${data.cells[cell]}`);
  };

  const drawAccepted = () => {
    const cell = Number(cellChoice.value);
    const rows = rowsOf(cell).filter((row) => row.h.length);
    const traces = rows.map((row) => ({
      type: "bar", name: plain(data.arms[row.a]), marker: { color: armColor(row.a) },
      x: row.h.map((_, accepted) => accepted), y: row.h,
      text: row.h.map((count) => percent(count / sum(row.h), 1).replace("+", "")),
      textposition: "none", hovertemplate: "%{x} accepted: %{y} steps, %{text}",
    }));
    draw("accepted", traces, {
      showlegend: true, barmode: "group", xaxis: axis("drafts accepted", { dtick: 1, zeroline: false }),
      yaxis: axis("verify steps", { rangemode: "tozero" }),
    }, `Histogram: verify steps by accepted drafts, by arm, cell ${data.cells[cell]}`);
  };

  const pairsOf = (cell, arm) => {
    const { q, y, b } = data.asked[cell];
    const length = (side, index) => (side[2 * index + 1] ? side[2 * index] / side[2 * index + 1] : null);
    const other = b ? b[arm] : y[baseline];
    return q
      .map((question, index) => ({ question, mine: length(y[arm], index), theirs: length(other, index) }))
      .filter(({ mine, theirs }) => mine !== null && theirs !== null)
      .sort((a, b) => a.mine - a.theirs - (b.mine - b.theirs) || a.question - b.question);
  };

  const drawQuestions = () => {
    const cell = Number(cellChoice.value);
    const arm = armChoice.value === "" ? -1 : Number(armChoice.value);
    const pairs = arm < 0 || (baseline < 0 && !data.held) || !data.asked.length ? [] : pairsOf(cell, arm);
    const numDiffering = pairs.filter(({ mine, theirs }) => mine !== theirs).length;
    const names = pairs.map(({ question }) => plain(data.questions[question]));
    const x = pairs.map((_, index) => index);
    const dots = (name, y, marker) => ({
      type: "scatter", mode: "markers", name: plain(name), x, y, marker, text: names,
      hovertemplate: "question %{text}: %{y:.3f}",
    });
    const traces = !pairs.length ? [] : [
      {
        type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false,
        line: { color: style("--quiet"), width: 1.5 },
        x: x.flatMap((index) => [index, index, null]),
        y: pairs.flatMap(({ mine, theirs }) => [theirs, mine, null]),
      },
      dots(heldAgainst, pairs.map(({ theirs }) => theirs), {
        color: style("--base"), size: 10, symbol: "circle-open", line: { width: 2 },
      }),
      dots(data.arms[arm], pairs.map(({ mine }) => mine), { color: armColor(arm), size: 6 }),
    ];
    const step = Math.ceil(pairs.length / Math.max(4, element("questions").clientWidth / 34));
    const ticks = x.filter((index) => index % step === 0);
    const tick = (name) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
    draw("questions", traces, {
      showlegend: true, height: 360,
      xaxis: axis("question", {
        tickvals: ticks, ticktext: ticks.map((index) => plain(tick(data.questions[pairs[index].question]))),
        range: [-0.7, pairs.length - 0.3], zeroline: false,
      }),
      yaxis: axis("acceptance length"),
    }, `Dots: acceptance length of each question in ${data.arms[arm]} and ${heldAgainst}, cell ${data.cells[cell]}`);
    remark("questions", `${numDiffering} of ${pairs.length} questions differ. ${cutText(data.left_out.questions, "questions, over all cells,")}`);
  };

  // Many cells get narrow bands, and only as many names as can be read.
  const bands = (count, most = 26) => {
    const height = Math.max(5, Math.min(most, 1800 / Math.max(1, count)));
    const printed = isPrinting ? Math.min(height, (PRINT_HEIGHT - 110) / Math.max(1, count)) : height;
    const size = Math.max(6, Math.min(12, printed * 0.8));
    const step = Math.ceil((size + 1) / printed);
    return { height: Math.round(height * count + 110), size, step };
  };
  const bandAxis = (labels, { size, step }) => {
    const ticks = labels.map((_, index) => index).filter((index) => index % step === 0);
    return axis("", {
      tickvals: ticks, ticktext: ticks.map((index) => plain(labels[index])), tickfont: { size },
      range: [labels.length - 0.5, -0.5], zeroline: false, showgrid: false,
    });
  };

  const drawMatrix = () => {
    const key = measureChoice.value;
    const grid = data.cells.map(() => data.arms.map(() => null));
    for (const row of data.rows) grid[row.c][row.a] = row[key];
    const numbers = grid.flat().filter((value) => value !== null);
    const show = (value) => {
      if (value === null) return "";
      return key === "ch" ? percent(value) : value.toFixed(key === "al" ? 3 : 1);
    };
    const isChange = key === "ch";
    const reach = Math.max(0.001, ...numbers.map(Math.abs));
    const [low, high] = isChange ? [-reach, reach] : [Math.min(...numbers), Math.max(...numbers)];
    // Nearly equal numbers get nearly equal colours: the scale spans two percent at least.
    const pad = isChange ? 0 : Math.max(0, 0.01 * Math.abs(high) - (high - low) / 2) || (high > low ? 0 : 1);
    const size = bands(data.cells.length);
    const names = grid.map((line, cell) => line.map((_, arm) => `${plain(data.cells[cell])}<br>${plain(data.arms[arm])}`));
    draw("matrix", !numbers.length ? [] : [{
      type: "heatmap", z: grid, text: grid.map((line) => line.map(show)), customdata: names,
      x: data.arms.map((_, arm) => arm), y: data.cells.map((_, cell) => cell),
      zmin: low - pad, zmax: high + pad, xgap: 2, ygap: size.size < 8 ? 0 : 2,
      colorscale: isChange
        ? [[0, style("--down")], [0.5, style("--zero")], [1, style("--up")]]
        : [[0, style("--low")], [1, style("--high")]],
      texttemplate: "%{text}", textfont: { size: size.size, color: style("--text") }, hoverongaps: false,
      hovertemplate: "%{customdata}: %{text}<extra></extra>",
      colorbar: { thickness: 10, outlinewidth: 0, tickformat: isChange ? "+.1%" : "", lenmode: "pixels",
        len: Math.min(200, size.height - 50), y: 1, yanchor: "top" },
      showscale: isWide(),
    }], {
      height: size.height,
      xaxis: axis("", {
        tickvals: data.arms.map((_, arm) => arm), ticktext: data.arms.map(plain), side: "top",
        showgrid: false, zeroline: false,
      }),
      yaxis: bandAxis(data.short, size), margin: { l: 50, r: 12, t: 34, b: 12 },
    }, `Heat map: ${measureChoice.selectedOptions[0].text} of each cell and arm`);
    remark("matrix", `${sharedText()} ${cutText(data.left_out.rows, "rows")}`);
  };

  // Marks at round percentages, placed on the log axis.
  const percentTicks = (low, high) => {
    const span = Math.max(Math.expm1(high), -Math.expm1(low), 0.001);
    const rough = span / (isWide() ? 5 : 2.5);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    const ticks = [];
    for (let number = -20; number <= 20; number += 1) {
      const share = number * step;
      if (share > -0.999 && Math.log1p(share) >= low && Math.log1p(share) <= high) ticks.push(share);
    }
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 2));
    return { tickvals: ticks.map(Math.log1p), ticktext: ticks.map((share) => percent(share, digits)) };
  };
  const LEGEND_ROWS = 70;
  const PARTS = ["acceptance", "step rate", "decode share"];

  const drawSplit = () => {
    const chosen = splitChoice.value;
    const splits = data.splits.filter(({ a }) => chosen === "" || a === Number(chosen));
    const labels = splits.map(({ c, a, o }) => {
      const versus = o === data.baseline ? "" : ` vs ${o}`;
      return data.cells.length > 1 ? `${data.short[c]} ${data.arms[a]}${versus}` : `${data.arms[a]}${versus}`;
    });
    const y = splits.map((_, index) => index);
    const full = splits.map(({ c, a, o }) => plain(`${data.cells[c]} ${data.arms[a]} against ${o}`));
    const traces = PARTS.map((name, part) => ({
      type: "bar", orientation: "h", name, y, x: splits.map(({ l }) => l[part]),
      marker: { color: style(`--arm-${[0, 1, 2][part]}`) }, customdata: full,
      text: splits.map(({ l }) => percent(Math.expm1(l[part]), 1)), textposition: "none",
      hovertemplate: "%{customdata}<br>%{text}",
    }));
    const totals = splits.map(({ l }) => sum(l));
    traces.push({
      type: "scatter", mode: "markers", name: "token/s", y, x: totals, customdata: full,
      marker: { symbol: "diamond", size: 9, color: style("--text"), line: { width: 1, color: style("--back") } },
      text: totals.map((total) => percent(Math.expm1(total), 1)), hovertemplate: "%{customdata}<br>%{text}",
    });
    const reach = (sign) => Math.max(0, ...splits.map(({ l }) => sum(l.map((part) => Math.max(0, sign * part)))));
    const margin = 0.06 * Math.max(reach(1) + reach(-1), 0.001);
    const range = [-reach(-1) - margin, reach(1) + margin];
    const size = bands(labels.length);
    draw("split", splits.length ? traces : [], {
      showlegend: true, barmode: "relative", height: size.height + (isWide() ? 0 : LEGEND_ROWS),
      xaxis: axis("change of token/s", { range, ...percentTicks(...range) }),
      yaxis: bandAxis(labels, size),
    }, "Stacked bars: acceptance, step rate and decode share in the throughput ratio of each cell and arm");
    remark("split", data.cells.length > 1 ? sharedText() : "");
  };

  // Equal throughput is a line through the origin: tokens a step = throughput x time of a step.
  const SWEEP_LINES = 5;
  const roundSteps = (low, high, count) => {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    const numbers = [];
    for (let number = Math.ceil(low / step); number * step <= high; number += 1) numbers.push(number * step);
    return numbers;
  };
  const padded = (numbers) => {
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const pad = 0.12 * (high - low || high);
    return [Math.max(0, low - pad), high + pad];
  };
  const drawSweep = () => {
    if (!data.sweeps.length) return;
    const { n, p } = data.sweeps[Number(sweepChoice.value)];
    const [left, right] = padded(p.map(({ ms }) => ms));
    const [bottom, top] = padded(p.map(({ al }) => al));
    const reached = p.map(({ ms, al }) => (1000 * al) / ms);
    const rates = roundSteps(0.9 * Math.min(...reached), 1.1 * Math.max(...reached), SWEEP_LINES);
    const lines = rates.map((rate) => {
      const x = [Math.max(left, (1000 * bottom) / rate), Math.min(right, (1000 * top) / rate)];
      return { rate, x, y: x.map((ms) => (rate * ms) / 1000) };
    }).filter(({ x }) => x[0] < x[1]);
    const widths = [...new Set(p.map(({ k }) => k))].sort((a, b) => a - b);
    const traces = !p.length ? [] : [
      ...lines.map(({ x, y }) => ({
        type: "scatter", mode: "lines", x, y, hoverinfo: "skip", showlegend: false,
        line: { color: style("--quiet"), width: 0.8, dash: "dot" },
      })),
      ...widths.map((k, index) => {
        const mine = p.filter((point) => point.k === k);
        return {
          type: "scatter", mode: "lines+markers+text", name: k === 1 ? "chain" : `top-k ${k}`,
          x: mine.map(({ ms }) => ms), y: mine.map(({ al }) => al),
          marker: { color: style(`--arm-${index % PALETTE}`), size: 9 },
          line: { color: style(`--arm-${index % PALETTE}`), width: 1 },
          text: mine.map(({ s }) => s), textposition: "top center", textfont: { size: 11 },
          customdata: mine.map(({ t, ts }) => `${plain(t)}<br>${fixed(ts, 2)} token/s`),
          hovertemplate: "%{customdata}<br>%{y:.3f} tokens a step, %{x:.2f} ms a step<extra></extra>",
        };
      }),
      ...p.filter(({ f }) => f).map(({ ms, al, t }) => ({
        type: "scatter", mode: "markers+text", name: "fastest", x: [ms], y: [al], hoverinfo: "skip",
        marker: { symbol: "circle-open", size: 18, color: style("--text"), line: { width: 2 } },
        text: [plain(t)], textposition: "bottom center", textfont: { color: style("--text") },
      })),
    ];
    draw("sweep", traces, {
      showlegend: true, height: 440, margin: { l: 50, r: 60, t: 60, b: 44 },
      legend: { orientation: "h", x: 0, y: 1.06, yanchor: "bottom", xanchor: "left" },
      xaxis: axis("ms a verify step", { range: [left, right], zeroline: false }),
      yaxis: axis("acceptance length", { range: [bottom, top], zeroline: false }),
      annotations: lines.map(({ rate, x, y }) => ({
        x: x[1], y: y[1], text: `${+rate.toPrecision(3)}/s`, showarrow: false,
        xanchor: x[1] < right ? "center" : "left", yanchor: x[1] < right ? "bottom" : "middle",
        font: { size: 11, color: style("--quiet") },
      })),
    }, `Dots: acceptance length against the time of a verify step, by draft shape, ${n}`);
  };

  const drawCell = () => {
    if (!data.cells.length) return;
    drawPositions();
    drawAccepted();
    drawQuestions();
  };
  const drawAll = () => {
    drawCell();
    drawMatrix();
    drawSweep();
    drawSplit();
  };

  document.addEventListener("themechange", drawAll);
  const setPrinting = (state) => () => {
    isPrinting = state;
    drawAll();
  };
  addEventListener("beforeprint", setPrinting(true));
  addEventListener("afterprint", setPrinting(false));

  // One chart a turn of the event loop, so that the tables answer while charts are drawn.
  const queue = [drawPositions, drawAccepted, drawQuestions, drawMatrix, drawSweep, drawSplit];
  const next = () => {
    const job = queue.shift();
    if (!job) {
      root.dataset.charts = "ready";
      return;
    }
    job();
    setTimeout(next);
  };
  next();
};

// The library is large: the browser gets to show the tables before it has to read it.
addEventListener("load", () => setTimeout(() => {
  const library = document.createElement("script");
  library.textContent = document.getElementById("chart-library").textContent;
  document.head.append(library);
  setTimeout(startCharts);
}, 50));
