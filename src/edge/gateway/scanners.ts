/** How vulnerability scanners and attack tools call themselves: parts of their user agents, in lower case. */
export const scannerNames: readonly string[] = [
  'acunetix', 'appscan', 'arachni', 'autogetcontent', 'awvs', 'bbscan', 'bilbo', 'burpcollaborator', 'burpsuite', 'cgichk', 'commix', 'crowdstrike falcon surface',
  'dalfox', 'detectify', 'dirbuster', 'dirsearch', 'dotdotpwn', 'dsss', 'fimap', 'feroxbuster', 'fhscan', 'fuzz faster u fool', 'ghauri', 'gobuster',
  'golismero', 'gospider', 'grabber', 'grendel-scan', 'havij', 'hydra', 'inspathx', 'internet-measurement', 'jaeles', 'jorgee', 'joomscan', 'kiterunner',
  'l9explore', 'l9tcpid', 'masscan', 'metis', 'morfeus', 'mozlila', 'n-stealth', 'nessus', 'netsparker', 'nikto', 'nimbostratus', 'nmap nse', 'nmap scripting engine', 'nsauditor', 'nuclei',
  'openvas', 'paros', 'pmafind', 'probely', 'qualys was', 'rustbuster', 'skipfish', 'sqlmap', 'sqlninja', 'sqlsus', 'sysscan', 'thanks-rob', 'vega/', 'w3af',
  'wapiti', 'webbandit', 'webinspect', 'webshag', 'websploit', 'wfuzz', 'whatweb', 'whatwaf', 'wpscan', 'xsser', 'xsstrike', 'zaproxy', 'zgrab', 'zmeu',
];
