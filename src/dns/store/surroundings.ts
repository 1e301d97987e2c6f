import { rows, type Db } from '../../db/client';
import { recordColumns, type RecordRow } from './records';

/** Names below `name` are a range of reversed names: they begin with its reverse and a dot, and "/" follows "." in ASCII. */
const isBelow = (column: string, name: string) => `reverse(${column}) ~>=~ reverse('.' || ${name}) and reverse(${column}) ~<~ reverse('/' || ${name})`;

/** Active records at these names, challenge records included. */
export function recordsAt(db: Db, zoneId: string, names: readonly string[]): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select ${recordColumns} from dns_record r where r.zone_id = $1 and r.name = any($2::text[]) and r.deleted_at is null`, zoneId, names);
}

/** Active records below a name that is not the apex. */
export function recordsBelow(db: Db, zoneId: string, name: string): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select ${recordColumns} from dns_record r where r.zone_id = $1 and r.deleted_at is null and ${isBelow('r.name', '$2::text')}`, zoneId, name);
}

/** One active record below each of the names that has any, but for those named `except`: what stands below a name makes it exist. */
export function witnessesBelow(db: Db, zoneId: string, names: readonly string[], except: readonly string[]): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select w.* from unnest($2::text[]) as n(name) cross join lateral (
    select ${recordColumns} from dns_record r where r.zone_id = $1 and r.deleted_at is null and ${isBelow('r.name', 'n.name')} and r.id <> all($3::text[]) limit 1) w`,
  zoneId, names, except);
}

/** Active CNAME records that name one of the hosts, or anything below one of the others; all of them absolute. */
export function cnamesTo(db: Db, zoneId: string, hosts: readonly string[], above: readonly string[]): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select ${recordColumns} from unnest($2::text[]) as h(host)
      join dns_record r on r.zone_id = $1 and r.deleted_at is null and r.type = 'CNAME' and reverse(r.value) = reverse(h.host)
    union
    select ${recordColumns} from unnest($3::text[]) as a(host)
      join dns_record r on r.zone_id = $1 and r.deleted_at is null and r.type = 'CNAME' and ${isBelow('r.value', 'a.host')}`, zoneId, hosts, above);
}
