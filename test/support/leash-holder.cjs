// Holds a server on a leash until it is killed: node leash-holder.cjs <log file> <shell program>
require('./typescript.cjs');
const { startLeashed } = require('../../src/dev/leash');

const [logFile, program] = process.argv.slice(2);
startLeashed({ command: '/bin/sh', args: ['-c', program], stopSignal: 'TERM', logFile }).then((server) => process.send(server.pid));
