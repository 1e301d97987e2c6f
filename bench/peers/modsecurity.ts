import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowedContentTypes } from '../../src/edge/gateway/seclang/engine';

export interface ModSecurityOptions {
  /** The Core Rule Set: a folder with `rules/*.conf`. */
  readonly crsDir: string;
  readonly port: number;
  /** `DetectionOnly` writes every transaction to the audit log. */
  readonly engine: 'On' | 'DetectionOnly' | 'Off';
  /** `host:port` to forward to; null: a fixed answer, from the port above. */
  readonly origin: string | null;
  /** Processor for `taskset`; null: any. */
  readonly core: number | null;
}

export interface ModSecurity {
  readonly pid: number;
  /** Ids of the rules that matched, by the value of the header `X-Corpus` of each request that came as far as ModSecurity. */
  readonly matchedRules: () => ReadonlyMap<string, readonly string[]>;
  stop(): Promise<void>;
}

/** What must be installed; empty when the peer can run. */
export function missingForModSecurity(crsDir: string): string[] {
  const tools = ['nginx', 'taskset'].filter((tool) => spawnSync('which', [tool]).status !== 0);
  const module = existsSync(modulePath) ? [] : ['libnginx-mod-http-modsecurity'];
  return [...tools, ...module, ...(existsSync(join(crsDir, 'rules')) ? [] : ['modsecurity-crs'])];
}

const modulePath = '/usr/lib/nginx/modules/ngx_http_modsecurity_module.so';

/** nginx with ModSecurity 3 and a Core Rule Set at paranoia level 1, one worker. Logging is on, as ours is. */
export async function startModSecurity(options: ModSecurityOptions): Promise<ModSecurity> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-modsecurity-'));
  chmodSync(folder, 0o777);
  const audit = join(folder, 'audit.log');
  writeFileSync(join(folder, 'modsecurity.conf'), rules(options, audit));
  writeFileSync(join(folder, 'nginx.conf'), nginx(options, folder));
  const command = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off; master_process off;'];
  const child = spawn(options.core === null ? 'nginx' : 'taskset', options.core === null ? command.slice(1) : ['-c', String(options.core), ...command], { stdio: ['ignore', 'ignore', 'inherit'] });
  await listening(options.port);
  return {
    pid: child.pid ?? 0,
    matchedRules: () => matched(readFileSync(audit, 'utf8')),
    stop: async () => {
      const gone = new Promise((resolve) => { child.once('exit', resolve); });
      child.kill('SIGTERM');
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function rules({ crsDir, engine }: ModSecurityOptions, audit: string): string {
  return `SecRuleEngine ${engine}
SecRequestBodyAccess On
SecResponseBodyAccess Off
SecRequestBodyLimit 13107200
SecRequestBodyNoFilesLimit 1048576
SecArgumentsLimit 1000
SecPcreMatchLimit 500000
SecPcreMatchLimitRecursion 500000
SecUnicodeMapFile /etc/nginx/unicode.mapping 20127
SecAuditEngine ${engine === 'DetectionOnly' ? 'On' : 'RelevantOnly'}
SecAuditLogFormat JSON
SecAuditLogType Serial
SecAuditLog ${audit}
SecAuditLogParts ABHZ
SecDefaultAction "phase:1,log,auditlog,pass"
SecDefaultAction "phase:2,log,auditlog,pass"
SecRule REQUEST_HEADERS:Content-Type "^(?:application(?:/soap\\+|/)|text/)xml" "id:200000,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
SecAction "id:900990,phase:1,nolog,pass,t:none,setvar:tx.crs_setup_version=400"
SecAction "id:900220,phase:1,nolog,pass,t:none,setvar:'tx.allowed_request_content_type=${allowedContentTypes}'"
SecAction "id:900200,phase:1,nolog,pass,t:none,setvar:'tx.allowed_methods=GET HEAD POST OPTIONS PUT PATCH DELETE'"
Include ${join(crsDir, 'rules')}/*.conf
`;
}

function nginx({ port, origin, engine }: ModSecurityOptions, folder: string): string {
  return `load_module ${modulePath};
worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log warn;
events { worker_connections 1024; }
http {
  access_log ${folder}/access.log; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  client_max_body_size 20m; keepalive_requests 1000000; large_client_header_buffers 8 32k; underscores_in_headers on; merge_slashes off;
  upstream origin { server ${origin ?? `127.0.0.1:${port + 1}`}; keepalive 32; keepalive_requests 1000000; }
  ${origin === null ? `server { listen 127.0.0.1:${port + 1}; location / { return 200 "ok"; } }` : ''}
  server {
    listen 127.0.0.1:${port};
    ${engine === 'Off' ? '' : `modsecurity on; modsecurity_rules_file ${folder}/modsecurity.conf;`}
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;
}

/** The audit log of format JSON is one object a line; rule ids are quoted strings in it. */
function matched(log: string): Map<string, string[]> {
  return new Map(log.split('\n').filter((line) => line.startsWith('{')).map((line) => [
    /"x-corpus":"(\d+)"/i.exec(line)?.[1] ?? '', [...line.matchAll(/"ruleId":"(\d+)"/g)].map(([, id = '']) => id),
  ]));
}

async function listening(port: number): Promise<void> {
  const until = Date.now() + 30_000;
  for (;;) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
      socket.on('error', () => { resolve(false); });
    });
    if (open) return;
    if (Date.now() > until) throw new Error('nginx does not listen');
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}
