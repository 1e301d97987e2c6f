/** Names that are asked about because many domains have them (contract dns.md §4.6). */
export const commonLabels: readonly string[] = [
  'www www1 www2 web website site home landing m mobile wap amp start origin edge cdn cdn1 cdn2 static assets img images image media video videos stream files file download downloads upload uploads content',
  'mail mail1 mail2 mx mx1 mx2 smtp smtp1 imap imap4 pop pop3 webmail email exchange owa autodiscover autoconfig relay newsletter news lists list bounce em email1 send mailer mg',
  'vpn remote rdp ssh sftp ftp ftps gateway gw bastion jump proxy firewall access citrix desktop',
  'dev develop test testing stage staging preview beta alpha demo sandbox qa uat prod production preprod lab local',
  'ns ns1 ns2 ns3 ns4 dns dns1 dns2',
  'app apps api api1 api2 v1 v2 graphql rest ws wss socket backend frontend service services admin administrator portal panel cpanel whm plesk dashboard console manage cms',
  'auth login sso id identity accounts account oauth idp secure my user users members client clients customer partner partners',
  'data db mysql postgres sql redis mongo elastic search grafana metrics monitor monitoring status stats analytics tracking track logs kibana prometheus',
  's3 storage backup backups cloud git gitlab github svn jenkins ci build registry repo docker nexus jira confluence wiki docs doc help support kb faq forum community blog shop store cart checkout pay payment payments billing invoice',
  'chat meet sip voip pbx calendar careers jobs events press about info eu us uk de fr asia',
].join(' ').split(' ');

export const servicePrefixes: readonly string[] = ['_dmarc', '_mta-sts', '_smtp._tls', '_acme-challenge'];

/** Selectors that mail providers give. */
export const dkimSelectors: readonly string[] = [
  'default', 'google', 'selector1', 'selector2', 'k1', 'k2', 'k3', 's1', 's2', 'mail', 'dkim', 'smtp', 'fm1', 'fm2', 'fm3', 'protonmail', 'protonmail2', 'protonmail3', 'pm', 'mandrill', 'zoho', 'mxvault', 'everlytickey1', 'sig1',
].map((selector) => `${selector}._domainkey`);

/** Asked below a name that has none of its own records but something beneath it. */
export const deeperLabels: readonly string[] = ['www', 'api', 'app', 'mail', 'admin', 'dev', 'staging', 'cdn', 'db', 'eu', 'us'];

const providers: readonly (readonly [suffix: RegExp, name: string])[] = [
  [/\.ns\.cloudflare\.com$/, 'Cloudflare'], [/\.awsdns-\d+\.(com|net|org|co\.uk)$/, 'Amazon Route 53'], [/\.(googledomains|google)\.com$/, 'Google'], [/\.azure-dns\.(com|net|org|info)$/, 'Azure DNS'],
  [/\.domaincontrol\.com$/, 'GoDaddy'], [/\.registrar-servers\.com$/, 'Namecheap'], [/\.digitalocean\.com$/, 'DigitalOcean'], [/\.(hetzner\.com|first-ns\.de|second-ns\.(de|com))$/, 'Hetzner'],
  [/\.gandi\.net$/, 'Gandi'], [/\.ovh\.(net|ca)$/, 'OVHcloud'], [/\.dnsimple(-edge)?\.(com|net|org|io)$/, 'DNSimple'], [/\.nsone\.net$/, 'NS1'], [/\.dnsmadeeasy\.com$/, 'DNS Made Easy'],
  [/\.linode\.com$/, 'Linode'], [/\.vercel-dns\.com$/, 'Vercel'], [/\.desec\.(io|org)$/, 'deSEC'], [/\.ui-dns\.(com|de|org|biz)$/, 'IONOS'],
];

/** Who runs a name server, as its name shows; null when it does not. */
export function providerOf(nameserver: string): string | null {
  return providers.find(([suffix]) => suffix.test(nameserver))?.[1] ?? null;
}
