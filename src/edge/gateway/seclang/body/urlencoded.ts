import { urlDecode } from '../transformations/decode';
import { argumentsMax, type Pair } from './types';

/** `a=1&b=2`, names and values decoded once; `excess` when there are more than 1,000. */
export function parseUrlencoded(text: string): { args: Pair[]; excess: boolean } {
  const args: Pair[] = [];
  if (text === '') return { args, excess: false };
  for (let start = 0, end = 0; end < text.length; start = end + 1) {
    end = text.indexOf('&', start);
    if (end < 0) end = text.length;
    if (end === start) continue;
    if (args.length === argumentsMax) return { args, excess: true };
    const part = text.slice(start, end);
    const at = part.indexOf('=');
    args.push({ name: urlDecode(at < 0 ? part : part.slice(0, at)), value: at < 0 ? '' : urlDecode(part.slice(at + 1)) });
  }
  return { args, excess: false };
}
