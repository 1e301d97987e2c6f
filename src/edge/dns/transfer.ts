import { rcodes, typeNumbers } from '../../dns/rules/wire/codes';
import type { WireName } from '../../dns/rules/wire/name';
import type { Rdata } from '../../dns/rules/wire/rdata';
import { signMessage, type TsigContext } from '../../dns/rules/wire/tsig';
import { answerFlags, MessageWriter } from '../../dns/rules/wire/writer';
import type { TransferRequest } from './responder';
import { snapshot, type LoadedZone, type StoredSet } from './zone-store';

/** Pointers of compressed names reach no further. */
const messageTarget = 16_000;

type Row = { owner: WireName; set: StoredSet; rdata: Rdata };

/**
 * Messages of a transfer (RFC 5936): the zone as it is now, SOA first and last, every message signed when the request was.
 * Null zone: one message with REFUSED. Each message is made when it is asked for, so a slow client costs no memory.
 */
export function* transferMessages(request: TransferRequest, zone: LoadedZone | null): Generator<Buffer> {
  const sign = signer(request.signed);
  if (!zone) {
    yield sign(begin(request, rcodes.REFUSED, true).finish());
    return;
  }
  const soaAndAll = rowsOf(zone);
  for (let next = 0; next < soaAndAll.length; ) {
    const writer = begin(request, rcodes.NOERROR, next === 0);
    next = fill(writer, soaAndAll, next);
    yield sign(writer.finish());
  }
}

/** Writes rows until the message is long enough; the index of the first one left. A message is written in one go: all share a buffer. */
function fill(writer: MessageWriter, rows: readonly Row[], from: number): number {
  let next = from;
  for (let row = rows[next]; row && writer.length < messageTarget; row = rows[++next]) {
    writer.writeRecord('answer', { owner: row.owner, type: row.set.type, typeName: row.set.typeName, ttl: row.set.ttl, rdata: row.rdata });
  }
  return next;
}

/** Taken in one go: the zone may change between two messages. */
function rowsOf(zone: LoadedZone): Row[] {
  const rows = snapshot(zone).flatMap(({ owner, set }) => set.rdatas.map((rdata) => ({ owner, set, rdata })));
  const isSoa = ({ set }: Row): boolean => set.type === typeNumbers.SOA;
  const soa = rows.filter(isSoa);
  return [...soa, ...rows.filter((row) => !isSoa(row)), ...soa];
}

/** RFC 5936 §2.2.1: the question stands in the first message. */
function begin({ message, question }: TransferRequest, rcode: number, first: boolean): MessageWriter {
  const writer = new MessageWriter(message.id, answerFlags(message.flags, rcode, rcode === rcodes.NOERROR));
  if (first) writer.echoQuestion(message.octets.subarray(question.at, question.end), question.name);
  return writer;
}

/** Each message is signed over the one before (RFC 8945 §5.3.1). */
function signer(context: TsigContext | null): (octets: Buffer) => Buffer {
  let prior = context?.mac;
  let continues = false;
  return (octets) => {
    if (!context) return octets;
    const signed = signMessage(octets, context, prior, { continues });
    prior = signed.mac;
    continues = true;
    return signed.octets;
  };
}
