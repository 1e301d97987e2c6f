/** A MaxMind database (MMDB 2.0) of IPv4 networks, written by hand: a search tree of 24-bit records, data, metadata. */
export function mmdbFile(networks: readonly (readonly [cidr: string, data: object])[]): Buffer {
  type Node = [Node | number | null, Node | number | null];
  const root: Node = [null, null];
  const data: Buffer[] = [];
  let size = 0;
  for (const [cidr, content] of networks) {
    const [address = '', bits = '32'] = cidr.split('/');
    const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
    let node = root;
    for (let depth = 0; depth < Number(bits); depth++) {
      const side = Math.floor(number / 2 ** (31 - depth)) % 2 === 0 ? 0 : 1;
      const below = node[side];
      if (depth === Number(bits) - 1) node[side] = size;
      else node = Array.isArray(below) ? below : (node[side] = [null, null]);
    }
    data.push(encode(content));
    size += data.at(-1)?.length ?? 0;
  }
  const nodes: Node[] = [root];
  for (const node of nodes) for (const child of node) if (Array.isArray(child)) nodes.push(child);
  const tree = Buffer.alloc(nodes.length * 6);
  nodes.forEach((node, index) => node.forEach((child, side) => {
    const record = child === null ? nodes.length : typeof child === 'number' ? nodes.length + 16 + child : nodes.indexOf(child);
    tree.writeUIntBE(record, index * 6 + side * 3, 3);
  }));
  const metadata = encode({ node_count: nodes.length, record_size: 24, ip_version: 4, database_type: 'Test', languages: 'en', binary_format_major_version: 2, binary_format_minor_version: 0, build_epoch: 1 });
  return Buffer.concat([tree, Buffer.alloc(16), ...data, Buffer.from('abcdef', 'hex'), Buffer.from('MaxMind.com'), metadata]);
}

/** Maps, UTF-8 strings and unsigned 32-bit numbers of the data section. */
function encode(value: unknown): Buffer {
  if (typeof value === 'string') return Buffer.concat([control(2, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(6, 4), bytes]);
  }
  const entries = Object.entries(value ?? {});
  return Buffer.concat([control(7, entries.length), ...entries.flatMap(([key, item]) => [encode(key), encode(item)])]);
}

function control(type: number, size: number): Buffer {
  return size < 29 ? Buffer.from([(type << 5) | size]) : Buffer.from([(type << 5) | 29, size - 29]);
}
