import { transformations } from './transformations';

/** A value together with everything already found out about it: its transformed forms and the results of operators, by their indexes. */
export class Text {
  private readonly forms: (Text | undefined)[] = [];
  /** What an operator table found out about it. Set by the first look of the prefilter. */
  found: Uint32Array | null = null;

  constructor(readonly value: string, private readonly shared: Map<string, Text>) {}

  /** The value after one transformation; the same object when that changes nothing. */
  form(transformation: number): Text {
    return this.forms[transformation] ??= this.transformed(transformation);
  }

  private transformed(index: number): Text {
    const value = transformations[index]?.(this.value) ?? this.value;
    if (value === this.value) return this;
    const known = this.shared.get(value);
    if (known) return known;
    const text = new Text(value, this.shared);
    this.shared.set(value, text);
    return text;
  }
}

/** Texts of one request: equal values are one object. */
export class Texts {
  private readonly known = new Map<string, Text>();
  constructor(private readonly repeated: RepeatedTexts) {}

  of(value: string): Text {
    let text = this.known.get(value);
    if (!text) this.known.set(value, text = new Text(value, this.known));
    return text;
  }

  /** For values that return with the next request: header names and values, methods, protocols. */
  repeatedly(value: string): Text {
    return this.repeated.of(value);
  }
}

const repeatedMax = 1_500;
const repeatedLengthMax = 512;

/** The values of headers that were seen last, over all requests; the oldest half goes when it is full. */
export class RepeatedTexts {
  private recent = new Map<string, Text>();
  private older = new Map<string, Text>();

  of(value: string): Text {
    const known = this.recent.get(value);
    if (known) return known;
    const text = this.older.get(value) ?? new Text(value, new Map());
    if (value.length > repeatedLengthMax) return text;
    this.recent.set(value, text);
    if (this.recent.size >= repeatedMax) {
      this.older = this.recent;
      this.recent = new Map();
    }
    return text;
  }
}
