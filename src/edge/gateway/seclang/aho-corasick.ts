/** Finds which of many words stand in a latin1 string, in one pass and without regard to case. One dense table; each word has a bit. */
export class WordFinder {
  private readonly classes = new Uint8Array(256);
  private readonly width: number;
  private readonly moves: Int32Array;
  /** Per state the range of `slots` and `masks` that its words set. */
  private readonly first: Int32Array;
  private readonly slots: Int32Array;
  private readonly masks: Uint32Array;

  constructor(words: readonly { readonly word: string; readonly bit: number }[]) {
    const folded = words.map(({ word, bit }) => ({ word: word.toLowerCase(), bit }));
    this.width = this.classify(folded.map(({ word }) => word));
    const capacity = 1 + folded.reduce((sum, { word }) => sum + word.length, 0);
    const moves = new Int32Array(capacity * this.width).fill(-1);
    const outputs: Set<number>[] = [new Set()];
    for (const { word, bit } of folded) this.add(word, bit, moves, outputs);
    this.moves = moves.slice(0, outputs.length * this.width);
    this.close(outputs);
    const found = outputs.map(wordsOfBits);
    this.first = new Int32Array(found.length + 1);
    found.forEach((list, state) => { this.first[state + 1] = (this.first[state] ?? 0) + list.length; });
    this.slots = Int32Array.from(found.flat(), ([slot]) => slot);
    this.masks = Uint32Array.from(found.flat(), ([, mask]) => mask);
  }

  /** Sets the bit of every word that `value` holds. */
  scan(value: string, into: Uint32Array): void {
    const { classes, moves, width, first, slots, masks } = this;
    let state = 0;
    for (let at = 0; at < value.length; at += 1) {
      const code = value.charCodeAt(at);
      state = moves[state * width + (code < 256 ? classes[code] ?? 0 : 0)] ?? 0;
      const end = first[state + 1] ?? 0;
      for (let index = first[state] ?? 0; index < end; index += 1) {
        const slot = slots[index] ?? 0;
        into[slot] = (into[slot] ?? 0) | (masks[index] ?? 0);
      }
    }
  }

  /** Class 0: in no word. Both cases of a letter are one class. */
  private classify(words: readonly string[]): number {
    let count = 1;
    for (const word of words) {
      for (let at = 0; at < word.length; at += 1) {
        const code = word.charCodeAt(at) & 0xff;
        if (this.classes[code] === 0) this.classes[code] = count++;
      }
    }
    for (let code = 0; code < 256; code += 1) {
      const lower = String.fromCharCode(code).toLowerCase().charCodeAt(0);
      if (lower !== code && lower < 256) this.classes[code] = this.classes[lower] ?? 0;
    }
    return count;
  }

  private add(word: string, bit: number, moves: Int32Array, outputs: Set<number>[]): void {
    let state = 0;
    for (let at = 0; at < word.length; at += 1) {
      const slot = state * this.width + (this.classes[word.charCodeAt(at) & 0xff] ?? 0);
      let next = moves[slot] ?? -1;
      if (next < 0) {
        next = outputs.push(new Set()) - 1;
        moves[slot] = next;
      }
      state = next;
    }
    outputs[state]?.add(bit);
  }

  /** Breadth first: missing moves follow the longest suffix, whose words end here too. */
  private close(outputs: Set<number>[]): void {
    const { moves, width } = this;
    const suffix = new Int32Array(outputs.length);
    const queue: number[] = [];
    for (let slot = 0; slot < width; slot += 1) {
      const next = moves[slot] ?? -1;
      if (next > 0) queue.push(next);
      else moves[slot] = 0;
    }
    for (let head = 0; head < queue.length; head += 1) {
      const state = queue[head] ?? 0;
      const back = suffix[state] ?? 0;
      for (const bit of outputs[back] ?? []) outputs[state]?.add(bit);
      for (let column = 0; column < width; column += 1) {
        const slot = state * width + column;
        const next = moves[slot] ?? -1;
        const other = moves[back * width + column] ?? 0;
        if (next < 0) moves[slot] = other;
        else { suffix[next] = other; queue.push(next); }
      }
    }
  }
}

/** Bits by the word of 32 they stand in. */
function wordsOfBits(bits: ReadonlySet<number>): (readonly [slot: number, mask: number])[] {
  const words = new Map<number, number>();
  for (const bit of bits) words.set(bit >>> 5, (words.get(bit >>> 5) ?? 0) | (1 << (bit & 31)));
  return [...words];
}
