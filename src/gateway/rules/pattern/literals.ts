import type { Node } from './tree';

const wordsMax = 48;
const lengthMax = 24;

/** Exact: all texts the node can be (lower case). Needed: one of these is in every match; null when nothing can be said. */
interface Found { readonly exact: readonly string[] | null; readonly needed: readonly string[] | null }

const nothing: Found = { exact: null, needed: null };
const empty: Found = { exact: [''], needed: null };

/** Texts, in lower case, one of which is in the lower-case form of every value the pattern matches; null when there are none of use. */
export function requiredLiterals(tree: Node): readonly string[] | null {
  const found = visit(tree);
  return best(found.needed, useful(found.exact));
}

function visit(node: Node): Found {
  switch (node.kind) {
    case 'set': return fromSet(node);
    case 'assert': return empty;
    case 'group': return visit(node.of);
    case 'look': return node.open === '?>' ? visit(node.of) : empty;
    case 'reference': return nothing;
    case 'repeat': return repeated(node);
    case 'choice': return chosen(node.options.map(visit));
    case 'sequence': return joined(node.parts.map(visit));
  }
}

function fromSet(node: Node & { kind: 'set' }): Found {
  const texts = new Set<string>();
  for (const [from, to] of node.ranges) {
    if (to - from > 8) return nothing;
    for (let code = from; code <= to; code += 1) texts.add(String.fromCharCode(code).toLowerCase());
  }
  return texts.size > 8 || texts.size === 0 ? nothing : { exact: [...texts], needed: null };
}

function repeated(node: Node & { kind: 'repeat' }): Found {
  const inner = visit(node.of);
  if (node.min === 0) return node.max === 1 && inner.exact && inner.exact.length < 8 ? { exact: unique([...inner.exact, '']), needed: null } : nothing;
  if (node.min === 1 && node.max === 1) return inner;
  const copies = Math.min(node.min, 4);
  const texts = joined(Array.from({ length: copies }, () => inner));
  return { exact: node.min === node.max && copies === node.min ? texts.exact : null, needed: best(texts.needed, useful(texts.exact)) };
}

function chosen(options: readonly Found[]): Found {
  const exact = options.every((option) => option.exact) ? unique(options.flatMap((option) => option.exact ?? [])) : null;
  if (exact && exact.length <= wordsMax) return { exact, needed: null };
  const needs = options.map((option) => best(option.needed, useful(option.exact)));
  return { exact: null, needed: needs.every((need) => need) ? unique(needs.flatMap((need) => need ?? [])) : null };
}

function joined(parts: readonly Found[]): Found {
  let needed: readonly string[] | null = null;
  let run: readonly string[] = [''];
  let whole = true;
  for (const part of parts) {
    needed = best(needed, part.needed);
    const product: readonly string[] | null = part.exact && run.length * part.exact.length <= wordsMax ? cross(run, part.exact) : null;
    if (product?.every((text) => text.length <= lengthMax)) { run = product; continue; }
    whole = false;
    needed = best(needed, useful(run));
    run = part.exact ?? [''];
  }
  return whole ? { exact: run, needed } : { exact: null, needed: best(needed, useful(run)) };
}

function cross(left: readonly string[], right: readonly string[]): string[] {
  return unique(left.flatMap((a) => right.map((b) => a + b)));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

/** A text of one common character says little; sets with such are used only when nothing better is there. */
function useful(texts: readonly string[] | null): readonly string[] | null {
  return texts && texts.length > 0 && texts.every((text) => text.length > 0) ? texts : null;
}

function best(a: readonly string[] | null, b: readonly string[] | null): readonly string[] | null {
  if (!a || !b) return a ?? b;
  return worth(a) >= worth(b) ? a : b;
}

function worth(texts: readonly string[]): number {
  return Math.min(4, ...texts.map((text) => text.length)) * 100 - texts.length;
}
