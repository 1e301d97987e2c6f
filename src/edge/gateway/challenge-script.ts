/**
 * The program of the challenge page. It finds a number n for which SHA-256 of `<token>:<n>` begins with enough zero bits, and
 * sends the form. It brings its own SHA-256 (FIPS 180-4), because browsers offer theirs only over TLS, and runs in slices so
 * that the page stays alive. A token lasts 120 s: after 100 s it loads the page again for a new one.
 */
export const challengeScript = `(function () {
  'use strict';
  var form = document.getElementById('challenge');
  var bits = Number(form.getAttribute('data-difficulty'));
  var prefix = form.elements.token.value + ':';
  var began = Date.now();
  var K = new Int32Array(64), H = new Int32Array(8), W = new Int32Array(64);
  for (var found = 0, candidate = 2; found < 64; candidate++) {
    var isPrime = true;
    for (var divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) isPrime = false;
    if (!isPrime) continue;
    if (found < 8) H[found] = (Math.pow(candidate, 1 / 2) % 1) * 4294967296 | 0;
    K[found++] = (Math.pow(candidate, 1 / 3) % 1) * 4294967296 | 0;
  }
  function turn(x, n) { return (x >>> n) | (x << (32 - n)); }
  function compress(state, bytes, offset) {
    for (var i = 0; i < 16; i++, offset += 4) W[i] = bytes[offset] << 24 | bytes[offset + 1] << 16 | bytes[offset + 2] << 8 | bytes[offset + 3];
    for (; i < 64; i++) {
      var x = W[i - 15], y = W[i - 2];
      W[i] = W[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >>> 3) + W[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ y >>> 10) | 0;
    }
    var a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (i = 0; i < 64; i++) {
      var t = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + K[i] + W[i] | 0;
      var u = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
      h = g; g = f; f = e; e = d + t | 0; d = c; c = b; b = a; a = t + u | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  }
  var message = new Uint8Array(prefix.length + 128), state = new Int32Array(8), start = new Int32Array(H);
  for (var at = 0; at < prefix.length; at++) message[at] = prefix.charCodeAt(at);
  var whole = prefix.length - prefix.length % 64;
  for (at = 0; at < whole; at += 64) compress(start, message, at);
  function isSolved(answer) {
    var length = prefix.length + answer.length, end = length + 9 + (64 - (length + 9) % 64) % 64;
    message.fill(0, prefix.length);
    for (var i = 0; i < answer.length; i++) message[prefix.length + i] = answer.charCodeAt(i);
    message[length] = 128;
    for (i = 1; i <= 4; i++) message[end - i] = (length * 8) >>> (8 * (i - 1));
    state.set(start);
    for (i = whole; i < end; i += 64) compress(state, message, i);
    return Math.clz32(state[0]) >= bits;
  }
  var n = 0;
  (function slice() {
    if (Date.now() - began > 100000) return location.reload();
    for (var until = Date.now() + 30; Date.now() < until;) {
      for (var tries = 0; tries < 200; tries++, n++) if (isSolved(String(n))) {
        form.elements.answer.value = String(n);
        return form.submit();
      }
    }
    setTimeout(slice, 0);
  })();
})();`;
