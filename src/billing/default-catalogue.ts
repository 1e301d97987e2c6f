import type { PlannedPlan } from './schemas';

/**
 * What is sold when BILLING_PLANS_FILE names nothing else (contract billing.md §3; limits: §8 of mail.md, dns.md,
 * gateway.md, postgres.md). Prices are per month. A limit of 0 forbids; one that is absent does not exist.
 */
type Column = Omit<PlannedPlan, 'product'>;

const mebibyte = 1024 ** 2;
const gibibyte = 1024 ** 3;

const displayNames = { none: 'None', trial: 'Trial', starter: 'Starter', launch: 'Launch', growth: 'Growth', business: 'Business' } as const;

function plansOf(product: PlannedPlan['product'], columns: readonly Omit<Column, 'displayName'>[]): PlannedPlan[] {
  return columns.map((column) => ({ product, ...column, displayName: displayNames[column.code] }));
}

function mail(code: Column['code'], monthlyPrice: string, [recipients, unitPrice]: [number, string | null], numbers: number[]): Omit<Column, 'displayName'> {
  const [sends = 0, domains = 0, keys = 0, webhooks = 0] = numbers;
  return {
    code, monthlyPrice,
    included: { 'mail.recipients': recipients },
    overage: unitPrice === null ? null : { 'mail.recipients': unitPrice },
    limits: { 'mail.services': 20, 'mail.sends_per_second': sends, 'mail.domains': domains, 'mail.api_keys': keys, 'mail.webhooks': webhooks },
  };
}

function dns(code: Column['code'], monthlyPrice: string, numbers: number[]): Omit<Column, 'displayName'> {
  const [zones = 0, records = 0, proxied = 0, rules = 0, rates = 0, matches = 0, addresses = 0, days = 0] = numbers;
  return {
    code, monthlyPrice, included: {}, overage: null,
    limits: {
      'dns.zones': zones, 'dns.records': records, 'dns.proxied_names': proxied,
      'gateway.custom_rules': rules, 'gateway.rate_limits': rates, 'gateway.matches_leaves': matches,
      'gateway.ip_list_entries': addresses, 'gateway.event_retention_days': days,
    },
  };
}

type PostgresNumbers = {
  services: number; storageMib: number; connections: number; memoryMib: [sharedBuffers: number, workMem: number, maxWalSize: number];
  tempFileMib: number; statementTimeoutSeconds: number; idleStopSeconds: number; retentionDays: number; manualBackups: number; undeleteHours: number;
};

function postgres(code: Column['code'], monthlyPrice: string, numbers: PostgresNumbers): Omit<Column, 'displayName'> {
  const [sharedBuffers, workMem, maxWalSize] = numbers.memoryMib;
  return {
    code, monthlyPrice, included: {}, overage: null,
    limits: {
      'postgres.services': numbers.services,
      'postgres.storage_bytes': numbers.storageMib * mebibyte,
      'postgres.connections': numbers.connections,
      'postgres.shared_buffers_bytes': sharedBuffers * mebibyte,
      'postgres.work_mem_bytes': workMem * mebibyte,
      'postgres.max_wal_size_bytes': maxWalSize * mebibyte,
      'postgres.temp_file_bytes': numbers.tempFileMib * mebibyte,
      'postgres.backup_retention_days': numbers.retentionDays,
      'postgres.manual_backups': numbers.manualBackups,
      'postgres.undelete_hours': numbers.undeleteHours,
      ...(numbers.statementTimeoutSeconds > 0 ? { 'postgres.statement_timeout_seconds': numbers.statementTimeoutSeconds } : {}),
      ...(numbers.idleStopSeconds > 0 ? { 'postgres.idle_stop_seconds': numbers.idleStopSeconds } : {}),
      ...(code === 'trial' ? { 'postgres.trial_days': 14 } : {}),
    },
  };
}

const gib = gibibyte / mebibyte;

export const defaultCatalogue: readonly PlannedPlan[] = [
  ...plansOf('mail', [
    mail('launch', '9', [10_000, null], [10, 3, 5, 3]),
    mail('growth', '49', [100_000, '0.0006'], [25, 25, 25, 10]),
    mail('business', '249', [1_000_000, '0.0003'], [100, 200, 100, 50]),
  ]),
  ...plansOf('dns', [
    dns('none', '0', [3, 200, 5, 5, 1, 0, 100, 1]),
    dns('launch', '0', [10, 1_000, 25, 20, 5, 20, 1_000, 7]),
    dns('growth', '20', [50, 3_500, 100, 100, 20, 20, 10_000, 30]),
    dns('business', '100', [500, 10_000, 1_000, 500, 100, 20, 20_000, 30]),
  ]),
  ...plansOf('postgres', [
    postgres('trial', '0', {
      services: 3, storageMib: 512, connections: 10, memoryMib: [16, 2, 64], tempFileMib: 256, statementTimeoutSeconds: 60,
      idleStopSeconds: 300, retentionDays: 0, manualBackups: 0, undeleteHours: 24,
    }),
    postgres('starter', '5', {
      services: 5, storageMib: 2 * gib, connections: 20, memoryMib: [32, 4, 256], tempFileMib: gib, statementTimeoutSeconds: 0,
      idleStopSeconds: 1_800, retentionDays: 3, manualBackups: 5, undeleteHours: 168,
    }),
    postgres('launch', '19', {
      services: 10, storageMib: 10 * gib, connections: 60, memoryMib: [128, 4, gib], tempFileMib: 4 * gib, statementTimeoutSeconds: 0,
      idleStopSeconds: 0, retentionDays: 7, manualBackups: 5, undeleteHours: 168,
    }),
    postgres('growth', '79', {
      services: 20, storageMib: 50 * gib, connections: 120, memoryMib: [gib, 8, 4 * gib], tempFileMib: 20 * gib, statementTimeoutSeconds: 0,
      idleStopSeconds: 0, retentionDays: 14, manualBackups: 5, undeleteHours: 168,
    }),
    postgres('business', '299', {
      services: 50, storageMib: 250 * gib, connections: 400, memoryMib: [4 * gib, 16, 16 * gib], tempFileMib: 50 * gib, statementTimeoutSeconds: 0,
      idleStopSeconds: 0, retentionDays: 30, manualBackups: 5, undeleteHours: 168,
    }),
  ]),
];
