/**
 * Which sequences of up to five kinds of tokens are an attack, as the smallest automaton that knows them all. States are separated by spaces; `!` marks an
 * accepting one; `1NV>2b` leads with a number, a name or a variable to state 2b (base 36). Kinds in upper case. The set was found by asking libinjection,
 * as Debian ships it, about every sequence, so that both judge alike.
 */
const states = [
  '! OU>0 (FSV>0 )>1/O>2 )1FNSV>0 (>4 (1FNSV>0 )>1/O>6 (FS>0 )>1/O>8 1N>3/F>5/S>7/V>9 1FNSV>0 (>0 (1FUV>0 (FOSU>0 (>b/F>c/S>d/V>e (1FKNSV>0 E>g O>f/U>h',
  ')O>0 )>1/F>c/1NSV>j (>k (FNSUV>0 (1FU>0 (>b/F>c/S>d/V>e/1>m/N>n U>h/O>o (>b/F>c/S>d U>h/O>q (>a/1N>i/F>l/S>p/V>r KN>0 E>t (>u KO>0 K>6/(>b/F>c/1NSV>w',
  'E>x &>v/U>y &),O>0 (1FKNOSV>0 F>c/1NSV>10/E>11 &COU>0 !CET>0 N>0 !(;CE>0 !C>0/O>2/&BK>6/F>c/E>t/)>13/;>14/T>15/U>16 1FNOSV>0 !;CKO>0 (1FNSUV>0 E>0',
  'F>c/(>18/1NSV>19/K>1a/U>1b )1EFNSV>0 (>1d O>0 K>0 C>0/&>6/(>b/F>c/O>g/1SV>1f/N>1g C>0/O>2/&BK>6/F>c/)>13/;>14/ET>15/U>16 !;C>0 !;CO>0',
  '!C>0/&BKO>6/F>c/E>t/)>13/;>14/T>15/U>16/1>1j/V>1k !C>0/&BK>6/O>8/F>c/E>t/)>13/;>14/T>15/U>16/S>1k (>12/1>17/E>1c/F>1e/K>1h/N>1i/S>1l/V>1m FN>0',
  'F>c/N>1g/K>1o (>1b E>1p/U>1q 1EFNSV>0 !&);BCFOU>0 F>c/(>1s/1NSV>1t (>b ET>11 !&;CKNOU>0 !&;CKOU>0 (>b/F>c/1>1x/NSV>1y CO>0 K>6/(>b/F>c/1NSV>20 F>0',
  '(>22 &;BEOU>0 &;BCEKU>0 B>6/(>b/F>c/U>1b/1SV>24/N>25 !&);BCKU>0 &);BCKU>0 !&);BCKOU>0 F>c/(>1s/1S>27/N>28/V>29 E>g/(>1b',
  'C>0/&>1u/,>1v/;>1w/B>1z/E>21/F>23/K>26/O>2a/U>2b F>c/E>g/1NSV>j F>5/(>2d ,;CKOT>0 (1FNOSV>0 ,;CEKOT>0 F>c/(>1s/1SV>2f/K>2g/N>2h T>0 :>2j 1CEFNSV>0',
  '(,;CFKOT>0 !C>0 (,1;CFKNOSTV>0 FO>c/K>11/T>15/(>2l/1SV>2m/;>2n/N>2o E>2i/N>2k/T>2p F>c/NSV>j O>6/U>1b O>8/U>1b F>5/(>2r/ST>2s/V>2t F>c/1SV>j/N>1f (F>0',
  '(E>0 !C>0/O>2/&BK>6/;>2n/,>2w/U>2x (>b/K>c !C>0/&BKO>6/;>2n/,>2w/U>2x !C>0/&BK>6/O>8/;>2n/,>2w/U>2x F>5/(>2v/1N>2y/E>2z/S>30/V>31 F>c/1NSV>j',
  'C>0/O>2/T>6/U>1b/;>2j ;COTU>0 ;CETU>0 (1EFSV>0 F>c/O>1g/(>1s/1SV>35/N>36/U>37 C>0/O>2/T>6/E>15/U>1b/;>2j K>15 C>0/OT>6/U>1b/;>2j ,CO>0 FK>0',
  '(>b/F>c/1SV>3c/E>3d C>0/T>6/O>8/U>1b/;>2j F>5/(>33/1>34/K>38/N>39/O>3a/S>3b/U>3e/V>3f 1FKNOSUV>0 )NO>0 ),O>0 F>c/E>g/SV>j/)>3h/1>3i/N>3j (>3k',
  'F>c/NSV>j/1>1f ET>0 &B>6/F>c/E>g/U>1b/O>2w/;>3n !C>0/O>2/&B>6/E>g/;>14/U>2x !C>0/&BE>6/;>14/U>2x !C>0/&BO>6/E>g/;>14/U>2x !C>0/&B>6/O>8/E>g/;>14/U>2x',
  'F>5/U>h/(>3m/)>3o/1>3p/N>3q/S>3r/V>3s F>c F>c/SV>j/1>1f U>1b (>b/F>c/1NSV>20 !(1;CFKNSV>0 (>1b/E>3y &,>3u/(>3v/)>3w/E>3x/U>3z (1EFKNOSV>0',
  'F>c/1NSV>10/E>41 C>0 &O>6/(>b/F>c/1SV>20/N>43 U>0 S>45 (1EFKNSUV>0 EU>0 &,;BCEFKOU>0 !CENT>0 (FSTV>0 (1EFNSV>0 (1FKNOSUV>0 ()1BFNSUV>0 (1EFNSTV>0',
  '!(1;CEFKOSTV>0 C>0/F>c/V>e/1>m/,>2w/&>47/(>48/)>49/;>4a/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g E>t/(>1b (FKSU>0 (1FOUV>0',
  '!C>0/F>c/,>2w/&>47/(>48/)>49/;>4a/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g/O>4j/S>4k F>1e/(>42/K>44/N>46/S>4h/U>4i/V>4l !;CK>0 E>4n !C>0/O>8/;>2n F>5/U>4o/V>4p',
  'O>2/(>22 NO>0 K>6/(>b/F>c/1NSV>4s 1FSV>0 ENT>0 :CO>0 O>2/ET>6/F>c/K>15/1SV>20/(>4u/;>4v/N>4w O>6/(>22 EKNT>0 N>4z 1F>0 O>8/(>51',
  'F>5/(>33/1>4r/E>4t/N>4x/S>4y/T>50/V>52 C>0/O>2/,>2w 1EFNOSV>0 !&(),;BCFKNOSUV>0 !(,;C>0 !(1;CFNOSV>0 !&(),1;BCFKNOSU>0 !&(),1;BCFKOUV>0',
  '!&(),;BCFKNOSU>0 !C>0/O>t/;>2n/(>55/1>56/F>57/K>58/N>59/S>5a/V>5b (1FS>0 (>1b/N>5d C>0/O>6/,>2w N>6 C>0/O>8/,>2w',
  '!C>0/F>5/K>1q/(>2d/;>2n/1>54/E>5c/O>5e/S>5f/T>5g/V>5h !C>0/O>6/;>2n F>5/O>q/U>4o/S>5j',
  'C>0/&>1n/(>1r/)>2c/,>2e/;>2q/A>2u/B>32/E>3g/F>3l/K>3t/N>40/O>4m/S>4q/T>53/U>5i/V>5k E>3d N>43 (>5m/K>5n T>5o &,1;BCFKNOSUV>0 )>0',
  'O>2/&>6/F>c/V>j/,>22/)>5q/NS>5r &)O>0 K>6/F>c/(>1s/1NSV>5t O>2/&>6/F>c/1>j/,>22/(>4u/)>5q &O>6/F>c/V>j/,>22/)>5q/1>5r &>6/O>8/F>c/S>j/,>22/)>5q',
  'F>1e/1>5s/E>5u/N>5v/S>5w/V>5x F>c/1NSV>j/(>1s !(CET>0 !C>0/&O>6/K>15/U>1b/;>60 (>b/F>c (>b/F>c/1NSV>j )KO>0 !);CKU>0 F>c/(>1s/1SV>64/N>65',
  'C>0/K>15/;>2n/)>45 &(),1;BFKUV>0 &(),;BFKOSU>0 F>c/(>1s/S>68/V>69 C>0/;>2n F>5/;>1q/U>2b/V>4p/&>5z/)>61/,>62/B>63/K>66/N>67/O>6a/S>6b K>23/(>3u',
  '&,1;BFKNOSUV>0 F>c/E>g/1NSV>10/O>5r/)>6e (>6f &(),FNOSV>0 &(),1FO>0 &(),1FOV>0 &(),FOS>0 F>c/E>g/1>6h/N>6i/S>6j/V>6k !);CK>0 !;CFK>0 !;CFKO>0',
  'O>2/&BK>6/;F>c/)>1y/,>2w/U>2x/N>6m/S>6n/V>6o K>c/(>22 )1EFNOSV>0 (>6r &BK>6/;F>c/1>19/)>1y/,>2w/U>2x/(>4u (N>0 (>b/K>6u',
  '&BKO>6/;F>c/)>1y/,>2w/U>2x/1>6n/V>6o &BK>6/O>8/;F>c/)>1y/,>2w/U>2x/S>6o (>6l/1>6p/E>6q/F>6s/N>6t/O>6v/S>6w/V>6x O>2/;>2n ),;BCKU>0',
  'F>c/(>1s/1SV>64/N>70 F>5/;>1q/U>2b/(>3v/&>5z/)>61/,>62/B>63/O>6a/1>6z/K>71 (>1b/N>1g K>73 !C>0/;>2n &(),;BFKNSUV>0 &(),1;BFKU>0',
  'F>c/(>1s/S>68/V>69/1>76/N>77 F>5/;>1q/U>2b/V>4p/&>5z/)>61/,>62/B>63/K>66/1>75/O>78 !C>0/O>2/K>15/;>2n/)>45 F>c/(>1s/S>68',
  'F>5/;>1q/U>2b/S>5j/&>5z/)>61/,>62/B>63/K>66/N>7a/O>7b (>5y/1>6c/E>6d/F>6g/K>6y/N>72/O>74/S>79/V>7c (1EFKNSV>0 (FNOSUV>0 ()1FNSUV>0 &(),1EFOU>0',
  '(1FKNSUV>0 C>0/,>6/F>c/V>e/A>4b/B>4c/E>4d/T>4f/U>4g/S>4k/;>4v/&>7e/1>7f/K>7g/N>7h/O>7i !&,1;ABCEFKNOSTUV>0 O>2/&>6/,>2w/)>7k &)KO>0',
  'F>c/O>1g/(>1s/K>2g/1NSV>7m ,>2w/(>5r &O>6/,>2w/)>7k ,>2w &>6/O>8/,>2w/)>7k F>1e/)>7j/1N>7l/E>7n/K>7o/S>7p/T>7q/V>7r (>7s ,AKO>0 O>2/)>7u O>6/)>7u',
  'O>8/)>7u F>5/1N>7v/S>7w/V>7x FNSV>0 F>c/SV>1f/(>7z 1SV>1/(>b/F>c/N>45 (,1AFKV>0 (,AFKOS>0 (>b/F>c/S>82/V>83 ,>62/A>80/K>81/O>84 F>c/1NSV>j/)>7u (>86',
  ',>62/A>80/K>81 (,AFKNSV>0 (,1AFK>0 (>b/F>c/S>82/V>83/1>89/N>8a ,>62/A>80/K>81/O>8b (>b/F>c/S>82 ,>62/A>80/K>81/O>8d (>7y/1>85/F>87/N>88/S>8c/V>8e',
  ';CKO>0 K>6/F>c/(>18/1SV>19/N>8g (1FSV>0 CET>0 O>2/F>c/)>13/U>16/&BK>8i/;>8j C>0/&BKO>6/F>c/E>t/)>13/;>14/T>15/U>16/1>1j/V>1k',
  '(>12/1>17/F>1e/K>1h/V>1m/E>8h/N>8k/S>8l F>c/(>1s/S>27/1N>28/V>29 &>1u/,>1v/;>1w/B>1z/E>21/F>23/K>26/U>2b/O>8n F>c/E>g/1SV>j/N>1f F>5/(>8p C>0/O>8/;>2n',
  'O>f/U>4o/S>6b/V>8r (1FKOSV>0 (,1;CEFKNOSTV>0 FO>c/T>15/(>2l/1SV>2m/;>2n/K>8t/N>8u E>2i/N>2k/T>8v &O>0 F>c/1SV>5t/N>8x C>0/O>2/&BK>6/;>2n/,>2w/U>2x',
  'F>5/1>2y/E>2z/S>30/V>31/(>8y/N>8z O>2/T>6/U>1b/;>2j F>5/(>33/1>34/O>3a/S>3b/U>3e/V>3f/N>91 ,O>0 F>c/E>g/1SV>j/)>3h/N>93 (>94',
  '!C>0/O>2/&B>6/E>g/U>2x/;>8j !B>6/U>2x/&E>8i/;>8j F>5/U>h/(>2v/)>3o/S>3r/V>3s/1>96/N>97 O>6/(>b/&F>c/1SV>20/N>43',
  'C>0/F>c/V>e/1>m/;>14/,>2w/&>47/(>48/)>49/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g C>0/F>c/,>2w/&>47/(>48/)>49/;>4a/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g/O>4j/S>4k',
  'F>1e/(>42/N>46/U>4i/K>99/S>9a/V>9b 1NSV>45 U>4o/O>9d !&(),1;BCFKOSU>0 !C>0/O>t/;>2n/(>55/1>56/F>57/K>58/S>5a/V>5b/N>9f',
  'C>0/F>5/K>1q/(>2d/;>2n/1>54/O>5e/S>5f/T>5g/V>5h/E>9g C>0/A>2u/T>53/&>8m/)>8o/,>8q/1>8s/;>8w/B>90/E>92/F>95/K>98/O>9c/S>9e/U>9h K>6/F>c/(>18/1NSV>19',
  '!C>0/O>2/&BK>6/F>c/)>13/;>14/ET>15/U>16 (>12/1>17/F>1e/K>1h/S>1l/V>1m/E>9j/N>9k F>5/N>43/U>4o/V>4p/S>6b FO>c/K>11/T>15/(>2l/1SV>2m/;>2n/N>8u',
  'E>2i/N>2k/T>9n F>5/U>h/(>33/)>3o/1>3p/N>3q/S>3r/V>3s &(,EU>0 UV>0 C>0/F>c/V>e/,>2w/&>47/(>48/)>49/;>4a/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g/N>9q/S>9r',
  '1EFSUV>0 (OUV>0 (1FNOSUV>0 ()1BFSUV>0 F>c/,>2w/S>45/&>47/)>49/;>4a/A>4b/B>4c/T>4f/U>4g/(>9t/1>9u/E>9v/K>9w',
  '!C>0/F>c/V>e/1>m/,>2w/&>47/(>48/)>49/;>4a/A>4b/B>4c/E>4d/K>4e/T>4f/U>4g F>1e/(>42/K>44/U>4i/V>4l/1>9s/N>9x/S>9y C>0/O>6/;>2n F>5/O>q/U>4o/S>a0',
  'C>0/(>1r/)>2c/,>2e/A>2u/B>32/E>3g/F>3l/T>53/U>9h/&>9l/1>9m/;>9o/K>9p/O>9z/V>a1 FO>0 O>2/F>c/V>j/NS>5r/)>a3 O>2/F>c/1NSV>j/(>4u/)>a3',
  'O>6/F>c/NV>j/1>5r/)>a3 O>8/F>c/S>j/V>5r/)>a3 F>5/1>a4/N>a5/S>a6/V>a7 (>b/F>c/S>22/V>a3 F>1v/O>a9 F>c/1NSV>j/)>a3 (>ab F>c/1SV>j O>6/;>2n O>8/;>2n',
  'F>5/1N>6z/O>a9/(>ad/S>ae/V>af (>b/F>c/1NS>22/V>a3 F>1v/O>ah (>b/F>c/S>22 F>1v/O>aj (>a8/1>aa/F>ac/N>ag/S>ai/V>ak 1FKNSV>0',
  'F>c/1SV>j/O>1g/K>2g/N>64/(>am E>an F>c/1NSV>3j !C>0/O>2/K>6/;>2n/,>2w !,;CKO>0 !(,;CK>0 (>b/F>c/1SV>ar/N>as C>0/O>2/K>6/;>2n/,>2w/(>5r',
  '!C>0/KO>6/;>2n/,>2w !C>0/K>6/O>8/;>2n/,>2w F>5/(>ap/1>aq/K>at/N>au/S>av/V>aw F>c/1NSV>1f (>ay (>ao/E>ax/F>az F>c/(>1s/1NS>27/V>29',
  'C>0/&>1u/,>1v/;>1w/B>1z/E>21/F>23/K>26/U>2b/O>b1 F>1e/(>42/K>44/U>4i/S>9y !C>0/F>5/K>1q/(>2d/;>2n/1>54/O>5e/S>5f/T>5g/V>5h/E>9g',
  'C>0/(>1r/,>2e/A>2u/B>32/E>3g/F>3l/T>53/&>9l/;>9o/K>9p/)>b2/O>b3/U>b4 X>0/&>s/)>z/1>5l/;>5p/E>7d/F>7t/K>8f/N>9i/S>a2/T>al/U>b0/V>b5',
].join(' ').split(' ');

const start = 402;

const moves: readonly ReadonlyMap<string, number>[] = states.map((state) => new Map(state.replace('!', '').split('/').filter(Boolean)
  .flatMap((move) => {
    const at = move.lastIndexOf('>');
    return [...move.slice(0, at)].map((kind): [string, number] => [kind, Number.parseInt(move.slice(at + 1), 36)]);
  })));

/** Whether a sequence of kinds is one that attacks have. */
export function isKnownFingerprint(fingerprint: string): boolean {
  let state: number | undefined = start;
  for (const kind of fingerprint.toUpperCase()) {
    state = moves[state]?.get(kind);
    if (state === undefined) return false;
  }
  return states[state]?.startsWith('!') ?? false;
}
