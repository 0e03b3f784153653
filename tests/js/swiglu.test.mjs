// The page's mathematics against numbers that torch computed a moment ago; tests/test_pages_swiglu.py writes them and runs this.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { erf } from "../../rtxstudy/pages/shared/erf.js";
import { ticks } from "../../rtxstudy/pages/shared/plot.js";
import * as core from "../../rtxstudy/pages/swiglu/core.js";

const torch = JSON.parse(readFileSync(process.env.RTX_FIXTURE, "utf8"));
const near = (found, wanted, what) =>
  assert.ok(Math.abs(found - wanted) <= 1e-5 * Math.max(1, Math.abs(wanted)), `${what}: ${found}, torch says ${wanted}`);

test("every activation and its slope are torch's, erf to the last digits", () => {
  assert.ok(torch.activations.length > 100);
  for (const row of torch.activations) {
    for (const name of ["sigmoid", "relu", "reluSlope", "gelu", "geluSlope"]) near(core[name](row.z), row[name], `${name}(${row.z})`);
    near(core.swish(row.z, 1), row.silu, `swish(${row.z}, 1)`);
    near(core.swishSlope(row.z, 1), row.siluSlope, `swishSlope(${row.z}, 1)`);
    assert.ok(Math.abs(erf(row.z) - row.erf) <= 4e-16 * 8, `erf(${row.z})`);
  }
});

test("SwiGLU, its parts and all its slopes are those of rtxlib's feed-forward and of autograd", () => {
  assert.ok(torch.units.length > 100);
  for (const { state, parts, slopes, compared } of torch.units) {
    const found = core.swiglu(state, state.x);
    for (const [name, wanted] of Object.entries(parts)) near(found[name], wanted, name);
    const steep = core.slopes(state, state.x);
    for (const [name, wanted] of Object.entries(slopes)) near(steep[name], wanted, `slope in ${name}`);
    near(steep.throughGate + steep.throughValue, slopes.x, "the two ways together");
    assert.deepEqual(Object.keys(compared).sort(), Object.keys(core.COMPARED).sort());
    for (const [name, [at, slope]] of Object.entries(compared)) {
      near(core.COMPARED[name].at(state, state.x), at, name);
      near(core.COMPARED[name].slope(state, state.x), slope, `slope of ${name}`);
    }
  }
});

test("the heat map holds Swish of the gate times the value, the greatest value first", () => {
  const { beta, cells, reach, rows } = torch.heat;
  const found = core.heat(beta, cells, reach);
  rows.flat().forEach((wanted, at) => near(found[at], wanted, `cell ${at}`));
  assert.equal(found.length, cells * cells);
});

test("the distances to the limits are the greatest there are on a fine grid", () => {
  for (const { beta, reach, half, relu } of torch.distances) {
    const found = core.distances(beta, reach);
    near(found.half, half, `distance from z/2 at β = ${beta}`);
    near(found.relu, relu, `distance from ReLU at β = ${beta}`);
  }
});

test("the minimum is where the slope is zero, and a straight line has none", () => {
  for (const beta of [0.05, 0.5, 1, 7, 20]) {
    const { z, value } = core.dip(beta);
    near(core.swishSlope(z, beta), 0, "slope at the dip");
    near(core.swish(z, beta), value, "depth of the dip");
  }
  assert.equal(core.dip(0), null);
  near(core.swish(3, 0), 1.5, "a straight line");
});

test("a patch changes what it may and nothing else", () => {
  const before = core.initial();
  assert.deepEqual(core.patched(before, { beta: 2, compare: ["geglu", "relu", "relu"] }), {
    ...before,
    beta: 2,
    compare: ["relu", "geglu"],
  });
  assert.equal(core.patched(before, { beta: 1e9 }).beta, core.NUMBERS.beta.most);
  assert.equal(core.patched(before, { beta: -1 }).beta, 0);
  const nonsense = [NaN, Infinity, "2", "<b>", null, undefined, [], {}, true];
  for (const value of nonsense) {
    assert.deepEqual(core.patched(before, { beta: value, x: value }), before, String(value));
    assert.deepEqual(core.patched(before, { compare: value && [value] }), before, String(value));
  }
  for (const patch of [null, undefined, 3, "beta", [], { colour: 1, __proto__: { beta: "x" } }]) {
    assert.deepEqual(core.patched(before, patch), before);
  }
  assert.deepEqual(before, core.initial()); // and the state before is left as it was
});

test("ticks are round, inside the axis, and few", () => {
  for (const [low, high] of [[-6, 6], [-0.3, 6], [0, 0.001], [-240.5, 12], [-1e-9, 1e-9], [3, 3.2]]) {
    const at = ticks(low, high, 6);
    assert.ok(at.length >= 2 && at.length <= 7, `${at}`);
    assert.ok(at.every((tick) => tick >= low - 1e-9 * (high - low) && tick <= high + 1e-9 * (high - low)), `${at}`);
    assert.ok(at.every((tick) => String(Math.abs(tick)).length < 8), `${at}`);
  }
  assert.deepEqual(ticks(-6, 6, 6), [-6, -4, -2, 0, 2, 4, 6]);
});
