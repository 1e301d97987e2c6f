import type { Policy } from '../../gateway/schemas';
import type { RequestView } from './request-view';
import { scannerNames } from './scanners';

const scanner = new RegExp(scannerNames.map((name) => name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('|'));

/** Which rule of the bots stage a request breaks (contract gateway.md §4.3, stage 11); null for none. Verified bots break none if the policy says so. */
export function botFault(settings: Policy['bots'], request: RequestView): 'bot.empty_user_agent' | 'bot.scanner' | null {
  if (settings.mode === 'off' || (settings.allowVerified && request.facts.isVerifiedBot)) return null;
  const userAgent = request.firstHeader('user-agent')?.trim() ?? '';
  if (userAgent === '') return settings.blockEmptyUserAgent ? 'bot.empty_user_agent' : null;
  return settings.blockKnownScanners && scanner.test(userAgent.toLowerCase()) ? 'bot.scanner' : null;
}
