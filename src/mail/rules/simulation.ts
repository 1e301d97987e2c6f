/** How an address of the simulator answers (contract mail.md §6); any domain, the local part decides. */
export type Simulation =
  | { kind: 'accept' }
  | { kind: 'bounce'; enhancedCode: string }
  | { kind: 'defer'; times: number }
  | { kind: 'complain' }
  | { kind: 'late-bounce'; enhancedCode: string }
  | { kind: 'slow'; seconds: number }
  | { kind: 'drop' };

const slowMaxSeconds = 60;
const form = /^(bounce|late-bounce)(?:\+(5\.\d{1,3}\.\d{1,3}))?$|^(defer|slow)(?:\+(\d{1,4}))?$|^(complain|drop)$/;

/** What becomes of mail to this address: `bounce+5.1.1@…`, `defer+3@…`, `slow+10@…`. Others are accepted. */
export function simulationOf(address: string): Simulation {
  const [, refusal, enhancedCode = '5.1.1', counted, count = '1', plain] = form.exec(address.slice(0, address.lastIndexOf('@')).toLowerCase()) ?? [];
  if (refusal === 'bounce' || refusal === 'late-bounce') return { kind: refusal, enhancedCode };
  if (counted === 'defer') return { kind: 'defer', times: Number(count) };
  if (counted === 'slow') return { kind: 'slow', seconds: Math.min(Number(count), slowMaxSeconds) };
  return plain === 'complain' || plain === 'drop' ? { kind: plain } : { kind: 'accept' };
}
