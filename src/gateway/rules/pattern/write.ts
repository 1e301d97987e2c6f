import { codeMax, type Node, PatternError, type Range } from './tree';

/** V8's linear engine refuses a repeat count that, multiplied through its nesting, exceeds this. */
const repeatMax = 16;
const lengthMax = 60_000;

/** `split`: repeats above 16 become several; `captures`: groups keep their numbers, else none captures and more can be split. */
export interface WriteOptions {
  readonly split: boolean;
  readonly captures: boolean;
}

/** The tree as the source of a RegExp without flag `i`. Throws PatternError when splitting makes it too long. */
export function writePattern(tree: Node, options: WriteOptions): string {
  return new Writer(options).write(tree);
}

class Writer {
  private length = 0;
  constructor(private readonly options: WriteOptions) {}

  write(node: Node): string {
    const text = this.node(node);
    this.length += text.length;
    if (this.length > lengthMax * 8 || text.length > lengthMax) throw new PatternError('it is too large once its repeats are written out');
    return text;
  }

  private node(node: Node): string {
    switch (node.kind) {
      case 'set': return writeSet(node.ranges);
      case 'sequence': return node.parts.map((part) => (part.kind === 'choice' ? `(?:${this.write(part)})` : this.write(part))).join('');
      case 'choice': return node.options.map((option) => this.write(option)).join('|');
      case 'group': return `(${node.capture && this.options.captures ? (node.name ? `?<${node.name}>` : '') : '?:'}${this.write(node.of)})`;
      case 'assert': return node.text;
      // RegExp has no atomic group; a look-ahead and a reference would be one, at the price of the linear engine: backtracking is guarded anyway.
      case 'look': return `(${node.open === '?>' ? '?:' : node.open}${this.write(node.of)})`;
      case 'reference': return node.text;
      case 'repeat': return this.repeat(node);
    }
  }

  private repeat(node: Node & { kind: 'repeat' }): string {
    if (node.of.kind === 'look' || node.of.kind === 'assert') return node.min === 0 ? '' : this.write(node.of);
    const inner = this.write(node.of);
    const atom = node.of.kind === 'set' || (node.of.kind === 'group' && inner.startsWith('(')) ? inner : `(?:${inner})`;
    const times = (min: number, max: number) => `${atom}${quantifier(min, max)}${node.lazy ? '?' : ''}`;
    const chunk = Math.max(1, Math.floor(repeatMax / weight(node.of)));
    const finite = Number.isFinite(node.max);
    const splittable = this.options.split && !(this.options.captures && captures(node.of));
    if (!splittable || (finite ? node.max : node.min) <= chunk) return times(node.min, node.max);
    let text = '';
    for (let left = node.min; left > 0; left -= chunk) text += times(Math.min(left, chunk), Math.min(left, chunk));
    if (!finite) return text + times(0, Infinity);
    for (let left = node.max - node.min; left > 0; left -= chunk) text += times(0, Math.min(left, chunk));
    return node.max === node.min || text.length > lengthMax ? text : `(?:${text})`;
  }
}

/** How often the most repeated part of a split node stands in V8's count. */
function weight(node: Node): number {
  switch (node.kind) {
    case 'repeat': {
      const inner = weight(node.of);
      const count = Number.isFinite(node.max) ? node.max : Math.max(1, node.min);
      return inner * Math.min(Math.max(1, count), Math.max(1, Math.floor(repeatMax / inner)));
    }
    case 'sequence': return Math.max(1, ...node.parts.map(weight));
    case 'choice': return Math.max(1, ...node.options.map(weight));
    case 'group': case 'look': return weight(node.of);
    default: return 1;
  }
}

function captures(node: Node): boolean {
  switch (node.kind) {
    case 'group': return node.capture || captures(node.of);
    case 'repeat': case 'look': return captures(node.of);
    case 'sequence': return node.parts.some(captures);
    case 'choice': return node.options.some(captures);
    default: return false;
  }
}

function quantifier(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
  if (min === max) return min === 1 ? '' : `{${min}}`;
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`;
}

function writeSet(ranges: readonly Range[]): string {
  const [first] = ranges;
  if (!first) return '[]';
  if (ranges.length === 1 && first[0] === first[1]) return character(first[0]);
  if (first[0] === 0 && first[1] === 0xffff) return '[^]';
  const inside = (list: readonly Range[]) => list.map(([from, to]) => (from === to ? character(from) : `${character(from)}-${character(to)}`)).join('');
  const last = ranges.at(-1);
  if (last?.[1] !== 0xffff || ranges.length === 1) return `[${inside(ranges)}]`;
  const gaps: Range[] = ranges.slice(1).map((range, index) => [(ranges[index]?.[1] ?? 0) + 1, range[0] - 1]);
  return `[^${inside(first[0] > 0 ? [[0, first[0] - 1], ...gaps] : gaps)}]`;
}

function character(code: number): string {
  const char = String.fromCharCode(code);
  if (/[A-Za-z0-9_ "'%&,:;<=>@!#~`]/.test(char)) return char;
  return code > codeMax ? `\\u${code.toString(16).padStart(4, '0')}` : `\\x${code.toString(16).padStart(2, '0')}`;
}
