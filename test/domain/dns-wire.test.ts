import * as dnsPacket from 'dns-packet';
import fc from 'fast-check';
import { flags, typeNumbers } from '../../src/dns/rules/wire/codes';
import { isWithin, MalformedDns, parentOf, readName, root, textName, wireName } from '../../src/dns/rules/wire/name';
import { decodeRdata, encodeRdata, flatRdata } from '../../src/dns/rules/wire/rdata';
import { readMessage, recordText } from '../../src/dns/rules/wire/reader';
import { checkTsig, signMessage, type TsigKey } from '../../src/dns/rules/wire/tsig';
import { MessageWriter } from '../../src/dns/rules/wire/writer';

const label = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((octets) => Buffer.from(octets).toString('latin1').toLowerCase().replace(/[À-Þ]/g, 'x'));
const anyName = fc.array(label, { maxLength: 6 }).map((labels) => labels.map((one) => String.fromCharCode(one.length) + one).join('') + root);
const key: TsigKey = { name: wireName('transfer.example'), secret: Buffer.from('a secret of the platform and its secondary') };

describe('names', () => {
  test('text and wire are each other\'s inverse, whatever octets a label holds', () => {
    fc.assert(fc.property(anyName, (name) => expect(wireName(textName(name))).toBe(name)));
  });

  test('case is folded for ASCII letters only', () => {
    expect(wireName('WWW.Example.COM')).toBe(wireName('www.example.com.'));
    const octets = Buffer.from([3, 0xc0, 0x41, 0xc1, 0]);
    expect(readName(octets, 0).name).toBe('\x03\xc0a\xc1\0');
  });

  test('a label that contains another name\'s octets is not below it', () => {
    const name = '\x0bx\x07example\x03com\0';
    const trick = `${String.fromCharCode(13)}x\x07example\x03com${root}`;
    expect([isWithin(trick, wireName('example.com')), isWithin(name, wireName('com')), isWithin(wireName('a.example.com'), wireName('example.com')), isWithin(wireName('anexample.com'), wireName('example.com'))]).toEqual([false, false, true, false]);
  });

  test('labels over 63, names over 255 octets and names past the end are refused', () => {
    const long = Buffer.concat([...Array.from({ length: 5 }, () => Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 0x61)])), Buffer.from([0])]);
    expect(() => readName(long, 0)).toThrow(MalformedDns);
    expect(() => readName(Buffer.from([0x40, 1]), 0)).toThrow(MalformedDns);
    expect(() => readName(Buffer.from([3, 0x61]), 0)).toThrow(MalformedDns);
    expect(() => wireName(`${'a'.repeat(64)}.com`)).toThrow(MalformedDns);
    expect(() => wireName(Array.from({ length: 128 }, () => 'a').join('.'))).toThrow(MalformedDns);
    expect(() => wireName('a..b')).toThrow(MalformedDns);
  });

  test('pointers lead back only: loops and pointers into the header are refused', () => {
    const header = Buffer.alloc(12);
    for (const tail of [[0xc0, 12], [0xc0, 14, 0xc0, 12], [0xc0, 0], [1, 0x61, 0xc0, 12], [0xc0]]) {
      expect(() => readName(Buffer.concat([header, Buffer.from(tail)]), 12)).toThrow(MalformedDns);
    }
    const back = Buffer.concat([header, Buffer.from([1, 0x61, 0, 1, 0x62, 0xc0, 12])]);
    expect(readName(back, 15)).toEqual({ name: wireName('b.a'), end: 19 });
  });

  test('the parent of the root is the root', () => expect(parentOf(root)).toBe(root));
});

describe('messages', () => {
  const values = [
    ['A', '192.0.2.1'], ['AAAA', '2001:db8::1'], ['NS', 'ns1.example.com'], ['CNAME', 'www.example.com'], ['MX', '10 mail.example.com'], ['TXT', `héllo ${'x'.repeat(600)}`], ['CAA', '0 issue "ca.example"'],
    ['SOA', 'ns1.example.com hostmaster.example.com 2026112101 7200 3600 1209600 300'], ['DS', '12345 13 2 00ff'], ['MX', '0 .'], ['TXT', ''],
  ] as const;

  test.each(values)('%s %s comes back as it was, through names compressed', (type, value) => {
    const writer = new MessageWriter(1, flags.qr);
    writer.writeQuestion(wireName('www.example.com'), typeNumbers[type]);
    for (let i = 0; i < 2; i++) writer.writeRecord('answer', { owner: wireName('a.www.example.com'), type: typeNumbers[type], typeName: type, ttl: 300, rdata: encodeRdata(type, value) });
    const message = readMessage(writer.finish());
    expect(message.answer.map((record) => recordText(message, record))).toEqual(Array(2).fill({ name: 'a.www.example.com', type, ttl: 300, value }));
    const flat = flatRdata(encodeRdata(type, value));
    expect(decodeRdata(typeNumbers[type], Buffer.concat([Buffer.alloc(12), flat]), 12, flat.length)).toBe(value);
  });

  test('another implementation reads what is written', () => {
    const writer = new MessageWriter(7, flags.qr | flags.aa);
    writer.writeQuestion(wireName('example.com'), typeNumbers.MX);
    writer.writeRecord('answer', { owner: wireName('example.com'), type: typeNumbers.MX, typeName: 'MX', ttl: 60, rdata: encodeRdata('MX', '10 mail.example.com') });
    writer.writeRecord('authority', { owner: wireName('com'), type: typeNumbers.NS, typeName: 'NS', ttl: 60, rdata: encodeRdata('NS', 'ns.mail.example.com') });
    const octets = writer.finish();
    expect(dnsPacket.decode(octets)).toMatchObject({ answers: [{ name: 'example.com', data: { preference: 10, exchange: 'mail.example.com' } }], authorities: [{ name: 'com', data: 'ns.mail.example.com' }] });
    expect(octets.length).toBe(12 + 17 + (2 + 10 + 2 + 7) + (2 + 10 + 5)); // every repeated name is a pointer
  });

  test('any octets either read whole or are refused as malformed', () => {
    const seed = dnsPacket.encode({ type: 'response', id: 1, questions: [{ name: 'a.example.com', type: 'A' }], answers: [{ name: 'a.example.com', type: 'MX', ttl: 1, data: { preference: 1, exchange: 'b.example.com' } }, { name: 'x.example.com', type: 'TXT', data: ['a', 'b'] }] });
    const mutated = fc.tuple(fc.array(fc.tuple(fc.nat(seed.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }), fc.nat(seed.length)).map(([changes, cut]) => {
      const octets = Buffer.from(seed.subarray(0, cut === 0 ? seed.length : cut));
      for (const [at, octet] of changes) if (at < octets.length) octets[at] = octet;
      return octets;
    });
    fc.assert(fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 200 }).map((octets) => Buffer.from(octets))), (octets) => {
      try {
        const message = readMessage(octets);
        for (const record of [...message.answer, ...message.authority, ...message.additional]) recordText(message, record);
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedDns);
      }
    }), { numRuns: 5000 });
  });
});

describe('TSIG', () => {
  const query = dnsPacket.encode({ type: 'query', id: 77, questions: [{ name: 'example.com', type: 'SOA' }] });
  const from = { keyOf: (name: string) => (name === key.name ? key : undefined), nowSeconds: 1_800_000_000 };
  const check = (octets: Buffer, nowSeconds = from.nowSeconds): unknown => {
    const message = readMessage(octets);
    return message.tsig && checkTsig(message, message.tsig, { ...from, nowSeconds });
  };
  const signed = signMessage(query, { key, mac: Buffer.alloc(0), nowSeconds: from.nowSeconds }, undefined).octets;

  test('a signed message is good, under another id as well', () => {
    expect(check(signed)).toMatchObject({ ok: true });
    const forwarded = Buffer.from(signed);
    forwarded.writeUInt16BE(78, 0);
    expect(check(forwarded)).toMatchObject({ ok: true });
  });

  test('any changed octet of what is signed makes it bad', () => {
    fc.assert(fc.property(fc.integer({ min: 2, max: query.length - 1 }).filter((at) => at < 4 || at > 11), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const changed = Buffer.from(signed);
      changed[at] = (changed[at] ?? 0) ^ change;
      try {
        expect(check(changed)).toMatchObject({ ok: false, error: 16 });
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedDns);
      }
    }));
  });

  test('an unknown key and a clock more than 300 s off are told apart', () => {
    const other = signMessage(query, { key: { ...key, name: wireName('other') }, mac: Buffer.alloc(0), nowSeconds: from.nowSeconds }, undefined).octets;
    expect(check(other)).toMatchObject({ ok: false, error: 17, signed: null });
    expect(check(signed, from.nowSeconds + 300)).toMatchObject({ ok: true });
    expect(check(signed, from.nowSeconds + 301)).toMatchObject({ ok: false, error: 18, signed: { key } });
  });
});
