import { invalid } from '../core/errors';
import type { DnsDeps } from './deps';
import { canonicalDomain, registrableDomain } from './rules/domains';
import { canonicalRecordName } from './rules/names';
import { scanDomain, type ScanDeps, type ScanWish } from './scan';
import type { ScanReport } from './scan-report';

const cachedMs = 60_000;
const cachedMax = 500;
/** Over all projects: nobody's servers are to be worn down from here. */
const perDomain = { name: 'dns-scan-domain', limit: 30, periodSeconds: 3_600 };
const recent = new Map<string, { at: number; report: Promise<ScanReport> }>();

/** Errors: `validation_error`. Any name may be looked at, those of the platform too. */
export function canonicalScan({ domain, names = [], deep = false }: { domain: string; names?: readonly string[] | undefined; deep?: boolean | undefined }): ScanWish {
  const parsed = canonicalDomain(domain, { allowTestTlds: true, platformSuffixes: [] });
  if (parsed.fault !== undefined) throw invalid([{ path: 'domain', message: parsed.fault }]);
  const { domain: canonical } = parsed.value;
  const read = names.map((name) => canonicalRecordName(name, canonical));
  const issues = read.flatMap(({ fault }, i) => (fault === undefined ? [] : [{ path: `names.${i}`, message: fault }]));
  if (issues.length > 0) throw invalid(issues);
  return { domain: canonical, deep, names: read.flatMap(({ value }) => (value === undefined || value === '@' ? [] : [value])) };
}

/** The same scan by the same project within a minute is answered with what was found. Errors: `rate_limited`, `domain_not_found`. */
export async function scanOnce(deps: ScanDeps & Pick<DnsDeps, 'limiter'>, projectId: string, wish: ScanWish): Promise<ScanReport> {
  const key = JSON.stringify([projectId, wish]);
  const known = recent.get(key);
  if (known && Date.now() - known.at < cachedMs) return { ...await known.report, cached: true };
  await deps.limiter.take(perDomain, registrableDomain(wish.domain));
  const report = scanDomain(deps, wish);
  remember(key, report);
  return report;
}

/** A scan that failed is not kept. */
function remember(key: string, report: Promise<ScanReport>): void {
  recent.delete(key);
  recent.set(key, { at: Date.now(), report });
  report.catch(() => recent.delete(key));
  for (const oldest of recent.keys()) {
    if (recent.size <= cachedMax) return;
    recent.delete(oldest);
  }
}
