import fc from 'fast-check';
import { readCidr } from '../../src/postgres/networks';

test.each([
  ['10.0.0.0/8', '10.0.0.0/8'], ['0.0.0.0/0', '0.0.0.0/0'], ['192.0.2.7/32', '192.0.2.7/32'], ['10.0.0.0/08', '10.0.0.0/8'],
  ['2001:DB8::/32', '2001:db8::/32'], ['::/0', '::/0'], ['2001:db8:0:0:0:0:0:1/128', '2001:db8::1/128'],
])('%s is kept as %s', (text, cidr) => expect(readCidr(text)).toEqual({ cidr }));

test.each(['10.0.0.1/8', '2001:db8::1/32', '10.0.0.0', '10.0.0.0/33', '::/129', '10.0.0/8', '010.0.0.0/8', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', 'localhost/8', 'fe80::%eth0/64', '', '/'])(
  '%s is refused with a reason', (text) => expect(readCidr(text)).toEqual({ fault: expect.stringMatching(/^must /) }));

test('a network with host bits is answered with the one that was meant', () => {
  expect(readCidr('192.168.7.9/16')).toEqual({ fault: 'must have no host bits set; did you mean 192.168.0.0/16?' });
});

test('what is accepted is in its final form, and contains only zero host bits', () => {
  const ipv4 = fc.tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.nat({ max: 32 }));
  fc.assert(fc.property(ipv4, ([address, prefix]) => {
    const masked = prefix === 0 ? 0 : (address & (0xffffffff << (32 - prefix))) >>> 0;
    const text = (value: number) => `${[24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')}/${prefix}`;
    const read = readCidr(text(address));
    if (masked === address) expect(read).toEqual({ cidr: text(address) });
    else expect(read).toHaveProperty('fault');
  }));
});
