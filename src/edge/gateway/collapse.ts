import { newId, type Id } from '../../core/ids';
import type { Decision, RequestFacts } from '../../gateway/ports';

export const rowsPerKeyAndMinute = 50;
export const rowsPerZoneAndSecond = 200;
const minuteMs = 60_000;

type Latest = { id: Id<'gwe'>; minute: number };

/**
 * Which row a request that is not clean is written into (contract gateway.md §4.6): one of its own, until a minute has 50 of this
 * address, rule and action or a second has 200 of the zone; then the last row of the same rule and action. Where an address is
 * allowed, its first row of the minute takes all.
 */
export class EventRows {
  private minute = 0;
  private perKey = new Map<string, { rows: number; lastId: Id<'gwe'> }>();
  private readonly latest = new Map<string, Latest>();
  private second = 0;
  private perZone = new Map<string, number>();

  choose(facts: RequestFacts, decision: Decision, nowMs: number): Id<'gwe'> {
    this.turn(nowMs);
    const rule = `${facts.zoneId} ${decision.outcome} ${decision.wouldHave ?? ''} ${decision.source ?? ''} ${decision.ruleId ?? ''}`;
    const key = `${rule} ${facts.clientIp}`;
    const known = this.perKey.get(key);
    if (known && known.rows >= (decision.outcome === 'allow' ? 1 : rowsPerKeyAndMinute)) return known.lastId;
    const rowsOfZone = this.perZone.get(facts.zoneId) ?? 0;
    const latest = this.latest.get(rule);
    if (rowsOfZone >= rowsPerZoneAndSecond && latest) return latest.id;
    const id = newId('gwe', nowMs);
    if (known) Object.assign(known, { rows: known.rows + 1, lastId: id });
    else this.perKey.set(key, { rows: 1, lastId: id });
    this.perZone.set(facts.zoneId, rowsOfZone + 1);
    this.latest.set(rule, { id, minute: this.minute });
    return id;
  }

  private turn(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.second) {
      this.second = second;
      this.perZone = new Map();
    }
    const minute = Math.floor(nowMs / minuteMs);
    if (minute === this.minute) return;
    this.minute = minute;
    this.perKey = new Map();
    for (const [rule, row] of this.latest) if (row.minute < minute - 1) this.latest.delete(rule);
  }
}
