import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';

/**
 * Envelope encryption: every secret has its own AES-256-GCM key, wrapped by the master key; both are bound to `aad`,
 * the place where the secret lives, so a sealed value moved to another row does not open.
 * Form: `v1.<key id>.<wrapped key>.<sealed text>`, base64url; the key id makes rotation of the master key possible.
 */
export class Secrets {
  private readonly keys: ReadonlyMap<string, Buffer>;
  private readonly currentKeyId: string;

  /** `masterKeys`: 32 bytes each, base64; the first seals, all open. Errors: a key of another length. */
  constructor(masterKeys: readonly string[]) {
    const keys = masterKeys.map((text) => Buffer.from(text, 'base64'));
    const [current] = keys;
    if (!current || keys.some((key) => key.length !== 32)) throw new Error('HOLDFAST_MASTER_KEY must hold 32 bytes in base64.');
    this.keys = new Map(keys.map((key) => [keyId(key), key]));
    this.currentKeyId = keyId(current);
  }

  seal(text: string, aad: string): string {
    const dataKey = randomBytes(32);
    const wrapped = encrypt(this.keyOf(this.currentKeyId), dataKey, aad);
    return ['v1', this.currentKeyId, wrapped, encrypt(dataKey, Buffer.from(text), aad)].join('.');
  }

  /** Errors: another `aad`, an unknown key id, a changed byte. The message never holds any of it. */
  open(sealed: string, aad: string): string {
    const [version, id, wrapped, body] = sealed.split('.');
    if (version !== 'v1' || !id || !wrapped || !body) throw new Error('A sealed value has an unknown form.');
    return decrypt(decrypt(this.keyOf(id), wrapped, aad), body, aad).toString();
  }

  /** The same secret under the first key; null when that is what holds it already. Errors: as `open`. */
  reseal(sealed: string, aad: string): string | null {
    return sealed.split('.')[1] === this.currentKeyId ? null : this.seal(this.open(sealed, aad), aad);
  }

  private keyOf(id: string): Buffer {
    const key = this.keys.get(id);
    if (!key) throw new Error(`A secret was sealed with master key ${id}, which is not configured.`);
    return key;
  }
}

/** SHA-256 in hex: how tokens and API keys are stored. They are random, so no salt and no stretching. */
export function digest(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function keyId(key: Buffer): string {
  return createHash('sha256').update('holdfast-master-key').update(key).digest('hex').slice(0, 8);
}

function encrypt(key: Buffer, text: Buffer, aad: string): string {
  const iv = randomBytes(12);
  const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(aad));
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

function decrypt(key: Buffer, text: string, aad: string): Buffer {
  const raw = Buffer.from(text, 'base64url');
  const decipher = createDecipheriv(algorithm, key, raw.subarray(0, 12)).setAAD(Buffer.from(aad)).setAuthTag(raw.subarray(12, 28));
  return Buffer.concat([decipher.update(raw.subarray(28)), decipher.final()]);
}
