import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(49);

test('resolveDnsName answers what the server answers, and tells the way', async () => {
  const zone = await world.zone('way.test');
  const lines = [
    ['A', 'www', '192.0.2.1'], ['CNAME', 'alias', 'www.way.test'], ['CNAME', 'out', 'x.example.net'], ['TXT', '*.w', 'wild'], ['NS', 'sub', 'ns.sub.way.test'], ['A', 'ns.sub', '192.0.2.53'], ['MX', '@', 'mail.example.net'],
    ['CAA', '@', '0 issue "ca.example"'], ['AAAA', 'a.b.c', '2001:db8::1'],
  ];
  await world.ask('POST', `/dns/zones/${zone.id}/records/batch?wait=published`, { json: { creates: lines.map(([type, name, value]) => ({ type, name, value })) } });
  const resolve = async (name: string, type: string) => (await world.ask('GET', `/dns/zones/${zone.id}/resolve?name=${encodeURIComponent(name)}&type=${type}`)).body;
  for (const [name, type] of [['www', 'A'], ['alias.way.test', 'a'], ['out', 'A'], ['x.w', 'TXT'], ['x.w', 'A'], ['@', 'MX'], ['@', 'CAA'], ['@', 'NS'], ['a.b.c', 'AAAA'], ['b.c', 'A'], ['nothing', 'A'], ['deep.sub', 'A']] as const) {
    const { answer } = await resolve(name, type);
    const dug = await world.dig(name === '@' ? 'way.test' : name.endsWith('way.test') ? name : `${name}.way.test`, type.toUpperCase());
    expect({ rcode: answer.rcode, count: answer.answer.length }).toEqual({ rcode: dug.rcode, count: dug.answers.length });
    if (type !== 'CAA') expect(answer.answer.map((one: { name: string; type: string; ttl: number; value: string }) => `${one.name} ${one.type} ${one.ttl} ${one.value}`).sort()).toEqual(dug.answers);
  }
  expect(await resolve('alias', 'A')).toMatchObject({ answer: { aa: true }, trace: [{ name: 'alias.way.test', step: 'name' }, { name: 'www.way.test', step: 'cname' }, { name: 'www.way.test', step: 'name' }, { name: 'www.way.test', step: 'answer' }] });
  expect(await resolve('deep.sub', 'A')).toMatchObject({ answer: { rcode: 'NOERROR', aa: false, authority: [{ name: 'sub.way.test', type: 'NS', value: 'ns.sub.way.test' }] }, trace: [{ step: 'delegation' }] });
  expect(await resolve('nothing', 'A')).toMatchObject({ answer: { rcode: 'NXDOMAIN', answer: [], authority: [{ type: 'SOA', ttl: 300 }] }, trace: [{ step: 'nxdomain' }] });
  expect(await resolve('bad name', 'A')).toMatchObject({ code: 'validation_error' });
  expect(await resolve('www', 'AXFR')).toMatchObject({ code: 'validation_error' });
});

test('what our servers do not answer is refused', async () => {
  const { body } = await world.ask('POST', '/dns/zones', { json: { domain: 'elsewhere.test', mode: 'external' } });
  expect((await world.ask('GET', `/dns/zones/${body.zone.id}/resolve?name=www&type=A`)).body).toMatchObject({ answer: { rcode: 'REFUSED', aa: false }, trace: [{ step: 'not_served' }] });
});
