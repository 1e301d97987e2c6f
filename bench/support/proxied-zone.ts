import type { Product } from '../../test/support/product';
import { idOf } from './dns';

/** A zone whose name `www` leads through the gateway to this port of ours; resolves when the gateway serves it. Its domain is proven by hand. */
export async function makeProxiedZone(product: Product, domain: string, originPort: number): Promise<{ id: string; path: string; host: string; policyPath: string }> {
  const { status, body } = await product.ask('POST', '/dns/zones', { body: { domain, mode: 'full_hosting' } });
  if (status !== 200) throw new Error(`No zone: ${JSON.stringify(body)}`);
  const id = idOf(body['zone']);
  await product.database.pool.query(`update dns_zone set status = 'active', served = true, activated_at = now() where id = $1`, [id]);
  const path = `/dns/zones/${id}`;
  const record = await product.ask('POST', `${path}/records`, { body: { type: 'A', name: 'www', value: '127.0.0.1', proxied: true, originProtocol: 'http', originPort } });
  if (record.status !== 200) throw new Error(`No record: ${JSON.stringify(record.body)}`);
  return { id, path, host: `www.${domain}`, policyPath: `${path}/security-gateway` };
}
