/**
 * Passwords of eight characters and more that guessers try first, lower-cased: the head of the frequency list of zxcvbn 4.4.2
 * (MIT, from public breaches) and common patterns since. Compared without regard to case.
 */
export const commonPasswords: ReadonlySet<string> = new Set(`
!qaz2wsx %%passwo 0.0.0.000 00000000 0000000000o 00096462 00197400 007james 01011900 01011910 01011950 01011960 01011961 01011970 01011971 01011972 01011973
01011974 01011975 01011976 01011977 01011978 01011979 01011980 01011981 01011982 01011983 01011984 01011985 01011986 01011987 01011988 01011989 01011990
01011991 01011992 01011993 01011994 01011995 01011999 01012000 01012001 01012010 01012011 01020304 0102030405 010203040506 01021990 01031985 01031988 01031989
01041985 01041988 01061986 01061990 01071986 01081989 01091987 01091989 01121986 01121988 013cpfza 01478520 0147896325 0192837465 02011971 02011975 02011980
02011981 02011982 02011983 02011984 02011985 02011986 02011987 02011988 02011989 02021971 02021973 02021976 02021979 02021981 02021982 02021983 02021984
02021985 02021986 02021987 02021988 02021989 02021990 02031970 02031973 02031974 02031975 02031977 02031978 02031979 02031980 02031981 02031982 02031984
02031985 02031986 02031987 02031988 02031989 02041972 02041973 02041974 02041975 02041976 02041977 02041978 02041979 02041980 02041981 02041982 02041983
02041984 02041985 02041986 02041987 02041988 02041989 02051970 02051972 02051973 02051975 02051976 02051977 02051978 02051980 02051981 02051982 02051983
02051984 02051985 02051986 02051987 02051988 02051989 02061971 02061972 02061974 02061976 02061977 02061980 02061982 02061983 02061984 02061985 02061986
02061987 02061988 02061989 02071971 02071975 02071976 02071978 02071979 02071980 02071981 02071982 02071983 02071984 02071986 02071987 02071988 02071989
02081970 02081973 02081974 02081976 02081977 02081980 02081982 02081983 02081984 02081985 02081986 02081987 02081988 02081989 02091971 02091973 02091975
02091976 02091977 02091980 02091981 02091983 02091984 02091985 02091986 02091987 02091989 02101973 02101976 02101977 02101979 02101981 02101983 02101984
02101985 02101986 02101987 02101988 02101989 03031986 03041986 03041991 03082006 04041988 04041991 04975756 05051985 05051987 05051989 06061986 06225930
063dyjuy 07071977 07071987 07091990 07831505 08031985 08031986 08051990 08081988 08121986 08154711 08522580 085tzzqi 09051945 090808qwe 0987654321q 09877890
0o9i8u7y 0okm9ijn 0raziel0 10011986 10011990 100200300 10031988 10051987 10071987 10101986 10101990 10111213 10203040 1020304050 102030405060 10293847
1029384756 10inches 11001001 11051987 11051990 11061985 11081989 11111111 1111111111zz 11111111a 111111aa 1111122222 11112222 1111aaaa 1111qqqq 11121314
1112131415 11121986 11122233 111222333 111222333a 1122112211 11223344 1122334455 112233445566 11223344q 11235813 1123581321 11924704 11c645df 11qq22ww
12011987 12021988 12031985 12031987 12051988 1211123a 12121212 12121985 12121990 12131415 1213141516 1223334444 12233445 12312312 123123123 123123123a
123123123q 123123321 12312345 123123456 123123qwe 123123qweqwe 1232323q 12332112 123321123 12332145 123321456 123321qwe 12340987 12341234 12344321 12344321q
1234509876 12345123 123452000 12345432 123454321 123455432 1234554321 12345600 12345612 123456123 12345654321 123456654321 12345666 12345671 12345677 12345678
123456780 123456781 123456789 1234567890 12345678900 12345678900987654321 1234567890a 1234567890q 1234567890qw 1234567890qwe 1234567890s 1234567890z
1234567891 12345678910 12345678912 123456789123 12345678987654321 1234567899 123456789987654321 123456789a 123456789aa 123456789abc 123456789b 123456789d
123456789f 123456789g 123456789k 123456789l 123456789m 123456789n 123456789o 123456789p 123456789q 123456789qaz 123456789qq 123456789qqq 123456789qw
123456789qwe 123456789qwerty 123456789r 123456789s 123456789t 123456789v 123456789w 123456789x 123456789z 123456789zxc 12345678a 12345678c 12345678q 12345678z
12345679 1234567a 1234567aa 1234567d 1234567q 1234567r 1234567t 1234567u 1234567w 1234567z 12345687 12345689 123456987 123456aa 123456ab 123456abc 123456as
123456asd 123456qaz 123456qq 123456qqq 123456qw 123456qwe 123456qwerty 123456ru 123456ss 123456zx 123456zxc 123456zz 123459876 12345abc 12345asd 12345qaz
12345qwe 12345qwer 12345qwert 12345qwerty 12345trewq 12345zxc 12345zxcvb 12346789 12347890 12348765 12349876 1234abcd 1234asdf 1234kekc 1234qwer 1234qwerasdf
1234qwert 1234qwerty 1234rewq 1234rmvb 1234zxcv 123581321 12365478 123654789 12369874 123698741 123698745 1236987z 123789456 123as123 123asd123 123hfjdk147
123masha 123mudar 123qaz123 123qq123 123qwe123 123qwe321 123qwe456 123qwe456rty 123qweas 123qweasd 123qweasdzxc 123qweqwe 123qwert 123qwerty 123zxc123
12435687 124578963 12481632 12e3e456 12locked 12monkey 12qw12qw 12qw34er 12qw34er56ty 12qwaszx 12qwerty 12s3t4p55 13021990 13031987 13041987 13041988 13061986
13121985 13243546 13245768 132465798 13324124 134679258 134679852 13572468 13576479 1357908642 1357911q 13579246 135792468 1357924680 135797531 135798642
1357997531 14021985 14021986 14061991 14111986 14725836 147258369 14785236 147852369 14789632 147896321 147896325 14881488 14938685 14vbqk9p 15011987 15021985
15051981 15051990 15101986 151nxjmt 15426378 154ugeiu 159357258 159753123 15975321 159753258 159753456 159753456852 15975346 159753852 15987532 159875321
16051987 16051989 16121987 17011987 17051988 17061988 17171717aa 18011987 18061990 18091985 18121812 18273645 18436572 18821221 19061987 19101987 19283746
192837465 19391945 19411945 1972chev 19844891 19877891 19922991 19933991 19966991 19992000 19mtpgam19 1a2a3a4a 1a2a3a4a5a 1a2b3c4d 1a2b3c4d5e 1a2s3d4f
1a2s3d4f5g 1aaaaaaa 1basebal 1charlie 1chelsea 1chicken 1compute 1diamond 1ferrari 1footbal 1hxboqg2 1hxboqg2s 1jennife 1jessica 1letmein 1matthew 1melissa
1michael 1million 1mustang 1panther 1pass1page 1passwor 1password 1patrick 1phoenix 1q2q3q4q 1q2q3q4q5q 1q2w3e4r 1q2w3e4r5 1q2w3e4r5t 1q2w3e4r5t6y 1qa2ws3e
1qa2ws3ed 1qa2ws3ed4rf 1qay2wsx 1qaz!qaz 1qaz2wsx 1qaz2wsx3edc 1qaz2wsx3edc4rfv 1qazxsw2 1qazxsw23edc 1qazxsw23edcvfr4 1qazzaq1 1qw23er4 1qwerty1 1qwertyu
1samanth 1scooter 1starwar 1superma 1thunder 1wildcat 1william 1x2zkg8w 1z2x3c4v 1z2x3c4v5b 1zxcvbnm 20031987 20051988 20061988 20091988 20091991 20111986
201jedlz 20spanks 21011989 21031987 21031988 21031990 21051988 21051991 21101986 21125150 2112rush 213qwe879 22011988 22021986 22021989 22031984 22041987
22041988 22061941 22071986 22334455 22446688 23021986 23041987 23049307 23176djivanfros 23skidoo 23wesdxc 24011985 24061986 24111989 243462536 24681012
24681357 246813579 24pnz6kc 25031987 25041988 25081988 25091987 25121987 25251325 25800852 25802580 26031988 26061987 260zntpc 27061988 27731828 28011987
28021990 28021992 28041987 29011985 29051989 29071983 2b8riedt 2kash6zq 2w3e4r5t 2wsx1qaz 2wsx3edc 2wsxcde3 2wsxzaq1 30031988 30041986 30051985 31011987
31217221027711 31415926 314159265 3141592654 321456987 32165498 321654987 3216732167 326159487 333222111 333666999 335533aa 33rjhjds 343104ky 34523452
34524815 36460341 368ejhih 369258147 369852147 380zliki 383pdjvl 38972091 3edc4rfv 3edcvfr4 3rjs1la7qe 3stooges 3syqo15hil 40028922 42042042 427cobra 43046721
43211234 4321rewq 44332211 44445555 44magnum 4506802a 456123789 456789123 45m2do5bs 48151623 4815162342 4815162342a 4815162342lost 4904s677075 49527843
495rus19 4r3e2w1q 4rfv3edc 4rfv5tgb 4z34l0ts 4z3al0ts 50spanks 51051051051 51842543 52678677 541233432442 54132442 551scasi 554uzpad 55556666 555666777
55667788 55832811 55bgates 565hlgqo 5hsu75kpot 5t4r3e2w1q 5t6y7u8i 5tgb6yhn 5wr2i7h8 62717315 640xwfkv 66613666 67camaro 686xqxfg 68camaro 69213124 69camaro
73501505 74108520 74123698 741236985 741258963 74185296 741852963 74227422 748159263 7777755102q 77777778 7777777a 77778888 777888999 777angel 789123456
78945612 789456123 7894561230 78963214 789632145 789654123 78n3s5af 794613852 7hrdnw23 7ovtgimc 7ugd5hip2j 80070633pc 808state 81726354 863abgsg 86753099
87654321 88351132 88889999 890098890 89015173454 89172735872 89231243658s 89600506779 8j4ye3uz 8letters 8phrowz622 8phrowz624 911turbo 918273645 9293709b13
96321478 963258741 96385274 963852741 98741236 987412365 98745632 987456321 987654321 9876543210 987654321a 987654321q 989244342a 99762000 99887766 999111999q
a1234567 a12345678 a123456789 a123456a a1a2a3a4 a1a2a3a4a5 a1b2c3d4 a1b2c3d4e5 a1l2e3x4 a1s2d3f4 a1s2d3f4g5 a7777777 a987654321 aa123321 aa123456 aaaa1111
aaaaaaa1 aaaaaaaa aabbccdd aardvark aaron123 aassddff ab123456 abc12345 abc123456 abc123abc abcd1234 abcde123 abcdef123 abcdefg1 abcdefgh abcdefghi abercrom
aberdeen abigail1 abnormal abracada abracadabra abrakadabra abulafia acapulco access12 access14 access20 access99 accessno account1 acerview aceshigh achilles
acidburn acidrain acun3t1x adelphia adgjmptw admin123 admin1234 admin18533362 adminadmin administrator admiral1 adrenali adrenalin adriana1 advantag adventur
aerosmit aerosmith afrodita agbdlcid agent007 agnieszka airborne airedale airforce airforce1 airplane ajcuivd289 akatsuki alabama1 alakazam alastair albacore
albatros alberto1 alcatraz alejandr aleksand aleksander aleksandr aleksandra alemania alessand alessandr alessandro alevtina alex1234 alex1990 alex1996
alex2000 alexande alexander1 alexandr alexandre alexandru alexsandr alfabeta alfarome alfaromeo algernon alhambra alicante aligator alinochka alkaline
allalone allblack alleycat alligato alligator allison1 allnight allstar1 allstars allstate aloysius alpacino alpha123 alphabet alphaman alphaone alskdjfhg
alterego amanda11 amanda12 amanda18 amanda69 amandine amarillo amateurs amatuers amber123 ambrosia ambulanc america1 amethyst amoremio amsterda amsterdam
amsterdam1 anabolic anaconda anakonda anastasi anastasiya anathema anatoliy andre123 andreas1 andreeva andretti andrew12 andrew123 andrewjackie andrey123
android1 andromed andromeda andyod22 anfield1 angel123 angel666 angel777 angeleye angeliqu angelito angelo4ek angelofwar anguilla anhyeuem anna1987 anna2000
anna2010 anna2614 annamari annelies annemari annette1 annushka anonymou another1 anteater antelope anthony1 anthony2 anthony7 antigone antivirus anton123
antonell antonella antonio1 antonius antoshka anuradha apokalipsis apollo11 apollo13 apple123 applemac applepie apples12 applesauce aq1sw2de3 aqswdefr
aquafina aqualung aquarius arabella arachnid aragorn1 arcangel archange archangel architec arclight arcturus areyukesc argentin argentum argonaut arhangel
arizona1 armadill armagedd armageddon armagedon armstron arrowhea arschloc arschloch arsenal1 art131313 artiller artofwar arwpls4u as123456 asd12345 asd123456
asd123asd asdasd123 asdasdas asdf1234 asdf12345 asdfasdf asdffdsa asdfg123 asdfg12345 asdfgh01 asdfgh12 asdfgh123 asdfghjk asdfghjkl asdfghjkl1 asdfghjkl123
asdfjkl; asdfqwer asdfzxcv asdqwe123 asfnhg66 ashley12 asmodeus aspirine astalavista asterios asterix1 astonvil astonvilla astroboy astrovan atlanta1
atlantida atlantis atreides august16 augustin aurelius austin12 austin31 austin316 australi autechre autobahn autumn2024 autumn2025 avalanch avalanche
avangard avemaria avenger1 aventura avondale awesome1 az123456 azathoth azerty123 azertyui azertyuiop azsxdcfv azsxdcfvgb azwebitalia b0ll0cks babemagn
babemagnet baberuth babushka baby2000 babybear babyblue babycake babycakes babydoll babyface babygirl babygirl1 babygurl babylon5 babylove backbone backdoor
backlash backspac badabing badboy69 badgirls badkarma badkitty badlands badnaamhere baggins1 bagheera bagpipes bailey12 bajingan bakayaro baldrick balefire
balloons ballsack baltimor banderas bandit12 bangkok1 baphomet baracuda barakuda barbados barbara1 barbaria barbarian barcelon barcelona barcelona1 barclays
bareback barefeet barefoot baritone barkley1 barracud barracuda bartende baseba11 basebal1 baseball baseball1 baseball2 basketba basketbal bassboat bassfish
bassingw bassline bassman1 bassmast batman01 batman12 batman69 batman99 batterse bayadera bayliner baywatch bbbbbbb1 bcfields beachboy beachbum bearcats
bearshar bearshare beatles1 beautifu beautiful1 beaver69 beckham7 beefcake beethove behemoth belgario bella123 bellagio bellevue bellsout belochka bendover
benedikt benessere benjamin1 benladen bennett1 bennyboy bentley1 bergerac bergkamp berliner bernard1 bernhard berserke berserker besiktas bestfriend beszoptad
bethany1 bettyboo bettyboop bigballs bigblack bigblock bigbooty bigbucks bigdaddy bigdaddy1 bigdog69 bigfella bigfoot1 biggdogg biggirls bigmoney bignasty
bigpoppa bigstick bigtitts bigtruck bigtymer bigwilly bikerboy billabon billabong billgate billiard billy123 billybob billyboy billyjoe bingbong bingo123
binladen biohazar biohazard bionicle birdhouse birdland birmingh birthday1 birthday21 birthday299 birthday4 birthday54 biscayne biscuit1 bismarck bismilla
bismillah biteme12 biteme69 blablabl black123 blackadd blackbea blackbel blackbelt blackber blackberry blackbir blackbird blackbox blackboy blackbur blackcat
blackcoc blackdog blackeye blackhaw blackhawk blackhol blackice blackie1 blackjac blackjack blacklab blackmag blackmen blackops blackout blackpoo blackrose
blackshe blacksta blacksun blacktop bladerun bladerunner blahblah blaster1 blastoff blenheim blessed1 blessing blingbling blink182 blizzard blondie1 blondinka
blood123 bloopers blowfish blowme69 blue1234 bluearmy blueball blueballs bluebear bluebell blueberr bluebird bluedevi blueduck blueeyes bluefish bluegill
bluegras bluejays blueline bluemoon bluenose bluenote bluerose bluesman bluestar blunt420 bmw325is bmw330ci bob12345 bobafett bobby123 bobbyboy bobdylan
bobmarle bobmarley bocephus bodyshop boeing74 bojangle bollocks bondage1 bondarenko bonefish bonehead bonethug bonghits boogaloo bookcase bookmark bookworm
boomboom boomtown boondock bootcamp bootneck bootsman bootyman borabora bordeaux boris123 borussia boscoe01 bosstone boston12 bowhunte bowling1 boyscout
br00klyn bradley1 bradpitt braindea brandon0 brandon1 brandon2 brasilia bravehea braveheart brazzers breakers breakfas brehznev brendan1 brentfor bretagne
brethart brian123 brianna1 bridget1 brighton britney1 britneys broncos1 broncos7 broodwar brooklyn brother1 browncow browndog browneye brownie1 brucelee
bruno123 bubba123 bubbadog bubblegu bubblegum bubbles1 buccanee buckeye1 buckeyes buckfast buckshot buckskin buckster buckwhea buckwheat budapest buddy123
buddyboy buddydog buddylee budlight budweise budweiser budwiser buffalo1 buffalos buffy123 bugsbunn bugsbunny bukowski bulldawg bulldog1 bulldog2 bulldogg
bulldogs bullfrog bullhead bullride bullseye bullwink bumblebe bumblebee bungalow bunghole buratino burunduk businessbabe bustanut buster01 buster11 buster12
bvgthfnjh byajhvfnbrf bynthytn c3por2d2 cab4ma99 caballer cabernet cabibble cabinboy cableguy cabowabo cachondo cachorro cadillac cadr14nu caitlin1 calamity
calavera caliente californ californi caligula calimero callisto callofduty camaro69 camaross camaroz2 camaroz28 cambiami cambridg camelot1 cameltoe cameron1
camille1 canadien candy123 candybar candycan candyman cannabis cannibal cannonda cannondale cantona7 capetown capital1 capitals capoeira capricor capricorn
capslock captain1 caramelo cardigan cardinal care1839 carebear carefree carlitos carlos12 carlton1 carnival carolcox carolina carolyn1 carpedie carpediem
carpente carrera4 carter15 carthage cartman1 cartoons casablan casablanca casanova casey123 caseydog cashflow cashmone cashmoney casper12 cassandr castaway
catdaddy caterham catfight catfish1 catherin cathouse catlover catmando catsdogs catsmeow catwoman cavalier caveman1 cbr600rr cbr900rr cdtnjxrf cdtnkfyf
cdznjckfd celestia cellphon celtic67 celtic88 celticfc celtics1 centauri centrino centurion cerberus cezer121 cfitymrf chainsaw challeng chamonix champagn
champion changeit changeme changeme1 changeme123 characte charger1 chargers charisma charles1 charles2 charlie1 charlie123 charlie2 charlie3 charlie4 charlie5
charlie6 charlie7 charlie8 charlie9 charlieb charlies charlott charlton charmed1 chase123 cheburashka checkers checkmat cheerios cheerleaers cheese12 chelsea0
chelsea1 chelsea2 chelseaf chelseafc chemistr cherokee cherries cheshire chessman chessmaster chester1 chester2 chevelle chevrole chevrolet chevy454 chevyman
chevys10 chevyz71 chewbacc chewbacca cheyanne cheyenne chgobndg chicago1 chicago2 chicken1 chicken2 chickens chickenwing101 chihuahu chilidog chillout
chimaera chinacat chinaman chipmunk chipper1 choclate chocolat chocolate1 choochoo chopper1 choppers chris123 chrisbln chrissie chrissy1 christer christia
christin christma christof christop christophe christos christy1 chrysler chuckie1 chuckles churchil cidkid86 cigarett cindylou cingular cinnamon cisco123
ciscokid citibank civilwar cjkysirj cjrjkjdf clambake clapton1 clarinet classic1 classics claudia1 claymore clayton1 clemence clemson1 cleopatr clevelan
clinton1 clippers clitlick clitoris close-up clubpenguin cnfybckfd cnhjbntkm cnhtrjpf cnjvfnjkju cntgfirf cobblers cobra427 cobrajet cocacola cocoloco
cocopuff cocorico codeblue coldbeer coldfire coldplay collants collecti colleen1 college1 collingw collins1 colole57 colombia colorado colossus colt1911
coltrane comanche comander combat123654 comcast1 comicbook comicbookdb comicsans commande commando commodor company1 company123 compaq12 computador computer
computer1 concorde concordi concrete connect1 connecti consense construc consumer contortionist contraseña1 control1 cookie12 cookie59 cookies1 coolbean
coolbeans cooldude coolgirl coolhand coolness coorslig copenhag corleone cornbrea cornbread cornflak cornhole cornholi cornholio corpsman
correcthorsebatterystaple cortland corvet07 corvett1 corvette costaric costarica cosworth counchac countach counterstrike country1 countyli courtney1 coventry
cowboys1 cowboys2 cowboyup cracker1 crackhea crackhead cracksevi cranberr crawfish crazy123 crazybab crazyboy crazyman crazyzil creampie creatine creative
creepers creosote crescent cricket1 crimson1 crippler cristiano critters crjhgbjy crocodil croucher crownvic crusader cruzazul crystal1 csfbr5yy ctdfcnjgjkm
cthuttdbx cthuttdyf cubbies1 cubswin1 cucciolo cuddles1 culinary cupcake1 curious1 cutegirl cutiepie cvbhyjdf cvtifhbrb cvzefh1gkc cxfcnkbdfz cxfcnmttcnm
cyberman cyberonline cyclones cyclops1 cyecvevhbr cygnusx1 cyjdsvujljv cynthia1 d1i2m3a4 d1lakiss dad2ownu daddy123 daedalus daffodil dagestan dagobert
daisy123 daisydog daisymae dallas12 dallas21 dallas22 dallastx damage11 dangerou daniel12 daniel123 daniela1 danielit danijela danil8098 danny123 dannyboy
dante123 danthema dantheman dapzu455 daredevi daredevil darkange darkangel darkjedi darkknig darkknight darklord darkmoon darkness darknight darkside darkstar
darkwing darkwolf darthmau darthvad darthvader dasha123 dashadasha database1 datalife datalore davecole daveyboy david123 davidkin davidoff daydream dbjktnnf
dbrnjhbz dbrnjhjdbx dbrnjhjdyf dcowboys dcunited ddddddd1 deadhead deadlift deadmeat deadpool deadspin deadwood death123 death666 deathnote deathrow deathsta
deborah1 deepblue deepthro deepthroat deerhunt deerhunter deeznuts deeznutz default1 defender defiant1 deftones delasoul delorean delpiero delta123 deltaforce
demon666 denis123 depechemode derparol derrick1 designer desperad desperado desperados destiny1 destroye detectiv detroit1 deutschland devil666 devildog
devildriver devilman devilmaycry devilmaycry4 devo2706 dfcbkbcf dfcbkmtd dfcbkmtdf dfkmrbhbz dfktynby dfktynbyf dgl70460 dhjnvytyjub diablo66 diablo666
diamante diamond1 diamonds diciembr dictiona dietcoke digital1 digiview dilbert1 dilligaf dillweed dima1234 dima12345 dima1993 dima1995 dima1996 dima1997
dima2000 dima2010 dimensio dingdong dinmamma dinosaur diogenes dionysus diosesamo dipstick direwolf dirkpitt dirtbike dirtyboy dirtydog discgolf discover
disturbe dixiedog djg4bb4b djgabbab djkrjlfd djkujuhfl dkflbckfd dkflbvbh dkflbvbhjdbx dkflbvbhjdyf dmitriev doberman dodgeram dodgers1 dodgeviper dogbreat
dogfight doggydog doggysty doggystyle doghouse doglover dogpound dolemite dolittle dollface dolomite dolphin1 dolphin2 dolphins doma77ns domainlock2005
domenico dominator dominic1 dominika dominion dominiqu dont4get dontknow doomsday doorknob doraemon doromich dortmund dothedew doughboy douglas1 downhill
draconis dragon00 dragon01 dragon10 dragon11 dragon12 dragon123 dragon13 dragon21 dragon22 dragon23 dragon66 dragon69 dragon76 dragon77 dragon88 dragon99
dragonba dragonball dragonballz dragonfire dragonfl dragonfly dragons1 dragrace dragster dreamcas dreamcast dreamer1 dreamers dressage drjynfrnt dropdead
dropkick dropzone drowssap drpepper drumline drummer1 drummers dthjybrf dthyjcnm dtkjcbgtl dtxyjcnm ducati99 duckhunt duckling ducksoup dudelove duffbeer
dukester dupont24 duracell durango1 dustydog dutchess dutchman dynamite dynastar dzxtckfd eae21157 eagle123 eagleeye eagleone eagles05 earnhard earthlin
earthlink eastside eastwest eastwood eatmenow eatmeraw eclipse1 edelweis edgewise edinburg edward12 edwardss efbcapa201 eggplant eightbal eightball einstein
eintrach ejaculation ekaterina el546218 elaine22 elbereth elcamino eldiablo eldorado electric electron elefante elektrik element1 elementa elenberg elephant
eleven11 elfquest elfstone elisabet elizabet elizabeth1 elizaveta elvira26 elvis123 emachine emachines emanuela emanuele embalmer emerald1 emiliano emmitt22
emyeuanh enamorad endymion energize enforcer engineer england1 enter123 enternow enterpri enterprise envision epaulson epiphone episode1 erection ericsson
escalade escorpio esmerald esperanz espresso essendon eternal1 eternity ethernet euphoria evanescence evangeli evangelion evenflow evergree everlast evermore
everques everquest everton1 evertonf everythi evgeniya evildead evolutio excalibe excalibu excalibur excellen executiv exploite explorer express1 extreme1
eyecandy f00tball f15eagle fabienne fabolous fabregas facebook1 failsafe fairfiel fairlane fairmont fairview falcon16 falcons1 fallout2 fallout3 falstaff
familyguy fandango fantasia fantasma fantasti fantasy1 fantomas fantomen farscape farside1 fartface fartripper fastback fastball fastcars fastfood fastlane
fatdaddy fatluvr69 favorite2 favorite5 favorite6 favorite7 favorite8 fcbayern fearless feathers federica fedorova feelgood fellatio fellowes fenerbahce
ferdinan ferndale ferrari1 ferrari2 ferrari3 feyenoord fffffff1 ffvdj474 fgjrfkbgcbc fgtkmcby fhntv1998 fhvfutljy fiction7 fidelity fightclu fightclub
fighter1 filibert finalfan finalfantasy fireball firebird fireblad fireblade firefigh firefighter firefly1 firehawk fireman1 firestar firestarter firestor
firestorm firetruc firetruck firewall firework fish1234 fishbait fishbone fishcake fisherma fisherman fishface fishfood fishhead fishing1 fishtank fivestar
fkbyf001 fkbyjxrf fkg7h4f3v6 fkmnthyfnbdf fktdnbyf fktrcfylh fktrcfylhf fktrcfylhjdbx fktrcfylhjdyf fktyeirf fktyjxrf flameboy flamengo flamingo flapjack
flash123 flashman flathead flatline fleetwoo flexible flhtyfkby flintsto flipflop flipmode flipper1 flipside florian1 florida1 florida2 flounder flowers1
flvbybcnhfnjh flyers88 fnkfynblf followme footbal1 football football1 football12 football123 football2 foothill footlong footlove forbidde ford9402 fordf150
fordf250 fordf350 fordtruc fordtruck foreplay foreskin forest11 forever1 forgetit forgotte forklift formula1 forsaken fortnite1 fortune12 fortytwo foucault
foxglove foxhound foxtrot1 foxylady francesc francis1 francisc frank123 frankfur frankie1 frdfhbev freakshow freckles fred1234 fredderf freddie1 freddy12
frederik free4all freebird freedom1 freedom2 freedom3 freedom7 freefall freelanc freelove freemail freeman1 freeport freeride freestuff freestyl freetime
freeuser freewill freiheit frenchie frfltvbz friday13 friedric friends1 friendste friendster froggies froglegs front242 frontera frontier fruitbat fruitcak
fujifilm fullback fullmetal fullmoon fullsail fumanchu funhouse funnyman funstuff funtimes fussball futurama futyn007 fuzzball fyfcnfcbz fyfnjkbq fyfrjylf
fylhjvtlf fylhtqrf fynjybyf fyutkbyf fyutkjxtr gabriel1 gabriel2 gabriell gadzooks galactic galactus galadriel galatasaray galeries gallaghe gallaries
gamecube gameover gametime gandalf1 gandalf2 gangbang gangbanged gangsta1 gangstar gangster ganjaman ganjubas gannibal ganymede gardenia garfield gargamel
gargoyle garrett1 gateway1 gateway2 gateways gatorade gauntlet gbgbcmrf gbhfvblf gblfhfcs gbpacker gearhead geibcnbr gemstone general1 genesis1 geneviev
geniusnet george01 george12 georgia1 geraldin germania germany1 geronimo gerrity1 gesperrt getalife getmoney getsdown getsmart gfccdjhl gfgfvfvf gfhfljrc
gfhjkm007 gfhjkm12 gfhjkm123 gfhjkmgfhjkm gfhjkmxbr gfhjkzytn gfhkfvtyn gfhnbpfy gfif1991 gfyfcjybr ghbdtn12 ghbdtn123 ghbdtnbr ghbdtnbr1 ghbdtnbrb ghbdtndctv
ghbdtnghbdtn ghbdtnrfrltkf ghblehjr ghblehrb ghbrjkbcn ghbrjkmyj ghbywtccf ghhh47hj764 ghhh47hj7649 ghjcnbnenrf ghjcnj123 ghjcnjgfhjkm ghjcnjghjcnj ghjcnjnfr
ghjcnjrdfibyj ghjdthrf ghjnjnbg ghjnjrjk ghjrehfnehf ghjuhfvvf ghjvtntq ghost123 ghostdog ghostman ghostrid ghostrider ghtktcnm ghtpbltyn gianluca gibsonsg
gigabyte gilbert1 gilgames ginger11 ginger12 ginscoot ginuwine girfriend giveitup gizmo123 gizmodo1 gjhjctyjr gjkbyjxrf gladiato gladiator gladston glendale
glennwei glenwood gmctruck gn56gn56 gnasher23 gobigred gobrowns godbless goddess1 godfathe godfather godisgoo godisgood godislove godloves godofwar godslove
godsmack godspeed godzilla gogators gogiants golakers goldeney goldeneye goldfing goldfinger goldfish goldmine goldrush goldsink goldstar goldwing golfball
golfcart golfclub golfer23 golfing1 gonefish good12345 good123654 goodfell goodfellas goodfood goodgirl goodhead goodison goodlife goodluck goodnews goodstuf
goodtime goodtimes goodtogo goodwood goodyear goofball google12 google123 gooseman gordon24 gorilla1 gorillaz gotigers gotohell gracelan grandpri grandprix
grasshop graywolf greatone greedisgood green123 greenbay greenbud greenday greendog greeneye greenman greentea greenwoo gregory1 gremlins grendel1 greyhoun
greywolf gridlock griffin1 griffins grimlock grizzly1 groupd2013 gsgba368 gsxr1000 gsxr1100 gtfullam gthtcnhjqrf gtkmvtyb gtkmvtym gtnhjdbx gtxtymrf guadalup
guardian guatemal guderian guesswho guest123 guillaum guillerm guinness guitar12 guitarra gulliver gunsling gunslinger gunsmoke gunther1 gy3yt2rgls gymnastic
gznybwf13 hairball hakkinen halflife halflife2 halfmoon halfpint hallo123 hallowee hamburg1 hamburge hammarby hammerhe hammers1 hamradio hamster1 handbags
handball handcuff handyman hannah01 hannibal hannover hansolo1 happines happy123 happyboy happyday happydays happydog happyman happyone hardball hardbody
hardcore hardcore1 hardhead hardline hardrock hardtail hardtime hardwood hardwork harley01 harley11 harley12 harry123 harrypot harrypotter hartland hatesyou
hatteras hattrick hawaii50 hawaiian hawkdog79 hawkeye1 hawkeyes hawkmoon hawkwind hawthorn hayabusa hayastan hazelnut hd764nw5d7e1vb1 headcase headless
headshot heather1 heather2 heathers heathrow heatwave hedgehog hedimaptfcor heineken heinlein helicopt hellbent hellfire hello123 hello1234 hellohel hellokit
hellokitty helloman hellomoto hellothe hellothere helloween helloworld helloyou hellrais hellraiser hellsing hellspawn hellyeah helpdesk hemicuda henderso
hendrix1 henrique hercules herewego herkules hermione hernande herpderp hershey1 hetfield heythere hfcgbplzq hfgcjlbz hhhhhhh1 hiawatha hibernia highball
highbury highheel highland highlander highlife hightime highwind hihje863 hilfiger hillbill hillside history1 hitman47 hjvfyjdf hobiecat hockey10 hockey12
hockey99 hogwarts holeinon holiday1 holland1 holliste holly123 hollydog hollywoo holymoly homebase homebrew homedepo homegrow homemade homepage homer123
homersim homewood honda250 hondacbr hondaciv hondacivic hondacrx honey123 honeybea honeybear honeybee honeybun honeydew honeypot hongkong honolulu hooligan
hoopstar hoopster hoosiers hooters1 hopefull hopkins1 horseman horsesho hosehead hot2trot hotbabes hotchick hotgirls hotpants hotsauce hotstuff hotwheel
hounddog house123 housewife housewifes houston1 hrvatska hshfd4n279 htubcnhfwbz hugoboss hulkster hunter01 hunter11 hunter12 hunter123 hunting1 hurrican
huskers1 huskies1 hustler1 hyperion hzze929b iaapptfcor iamhappy iamthema iamtheone ibill123 ibilljpf ibilltes icecream icehouse iceman69 iddqdidkfa idontcare
idontkno idontknow iforgot1 ignatius igromania ihateyou ijrjkflrf ikilz083 ilikepie illmatic illumina illusion iloveamy ilovegod iloveher ilovehim ilovejen
ilovekim ilovelife ilovemom ilovemyself ilovepor ilovepus iloveyou iloveyou! iloveyou1 iloveyou2 ilya1234 ilya1992 imissyou immortal imperator imperium
implants imtheman incognito incubus1 indahous independ india123 indiana1 indians1 inferno1 infiniti infinity inflames informat ingram01 inkognito insertion
insertions insomnia inspecto inspiron installutil insuranc integra1 interacial intercourse internat internet internet1 intranet intrepid intruder inuyasha
invalidp invictus iphone123 iqzzt580 ireland1 irishman irondoor ironhead ironhors ironmaid ironmaiden ironman1 ironpony ironroad irontree isacs155
iseedeadpeople ishikawa iskander islander istanbul istheman italiano itdxtyrj iverson3 iwantyou izabella j3qq4h7h2v jack1234 jackass1 jackdani jackryan
jackson1 jackson2 jackson5 jacqueli jadakiss jailbait jailbird jaimatadi jakester jalal123 jalapeno jamaica1 james007 james123 jamesbon jamesbond jamesbond007
jameson1 jamie123 jamielee january1 january2 japanees jaredleto jasmine1 jason123 jasper12 jayhawks jbond007 jeanpaul jediknig jediknight jedimast jeepster
jefferso jeffrey1 jellybea jellybean jellyfis jemoeder jennife1 jennifer1 jenny123 jericho1 jeronimo jerrylee jerusale jessica0 jessica1 jessica2 jessica7
jessica8 jessicas jesucrist jesus123 jesus777 jesuschrist jetbalance jg3h4hfn jiggaman jillian1 jimmy123 jiujitsu jjjjjjj1 jledfyxbr jo9k2jw2 joesakic
johanna1 johannes john1234 johncena johndeer johndeere johngalt johnmish johnny69 johnpaul johnson1 johnson2 joker123 jonathan1 jordan01 jordan11 jordan12
jordan22 jordan23 joseluis joseph10 josephin joshua01 joshua12 joystick juancarlo juggernaut julie456 junglist junkmail junkyard jupiter1 jupiter2 jurassic
just4fun just4you justdoit justforfun justice1 justin11 justin12 justinbieber juventus juventus1 k1234567 k9dls02a kakaroto kakashka kamasutr kamasutra
kamehame kamehameha kamikadze kamikaze kangaroo kappasig karaganda karamelka karolina kasparov katarina katerina katerinka katharin katie123 katmandu katrina1
kawasaki kayaking kazanova kazantip kcchiefs kcj9wx5n kelly001 kelly123 kellyann kennedy1 kenneth1 kennwort kenny123 kenshiro kenworth kevin123 keyboard
keystone kfcnjxrf kfvgjxrf kickass1 kickflip kikimora killabee killbill killemall killer12 killer123 killer66 killer666 killerbe killians killzone kimber45
kimberle kindbuds king1234 kingdom1 kingfish kingfisher kingkong kingrich kingsize kingston kirill123 kissarmy kissmyas kitty123 kittycat kittykat kjrjvjnbd
kleopatra klimenko klingon1 klondike klootzak knickerless knickers knockers knowledg knuckles kochamcie kochanie kodaira52 koetsu13 kokakola komarova komputer
kondom25 konfetka konstantin kordell1 koroleva koshechka koteczek kovalenko krasnodar krasotka kristen1 kristin1 kristinka kristjan krokodil ktybyuhfl
kukuruza kukushka kuleshov kurosaki kusanagi l58jkdjp! l8g3bkde labrador lacrimosa lacrosse ladybird ladybug1 ladyffesta ladygaga ladyluck laetitia lagwagon
lakeland lakers24 lakers32 lakers34 lakeside lakewood lalakers lalaland lambchop lamborghini lambrett lancaste lancelot landrove landrover landscap lapdance
lapochka laracrof laracroft larry123 laserjet lasombra lastochka lasttime lasvegas lavalamp lbfyjxrf lbhtrnjh leavemealone lebedeva lebowski lebron23
ledzeppelin leedsutd left4dead lefthand leglover legoland leiceste lemmings lemonade lena2010 lenochka leonard1 leonidas lerochka letitrid letmein0 letmein1
letmein123 letmein2 letmein22 letmein6 letmein7 letmein9 letmeinn letmeinnow letmesee letsdoit letsplay levelone leviatha leviathan lexingky lexingto lfitymrf
lhbjkjubz2957704 libertad liberty1 licorice lifehack lifeisgood lighthou lightnin lightning lightsab lightsaber lildevil lilwayne limabean limaperu limewire
limpbizk limpbizkit lincoln1 lindsay1 lindsey1 lineage2 linkedin1 lionhear lionheart lionking littlebi littlema littleman littleon liveevil livelife liverpoo
liverpool liverpool1 liverune livewire lizaveta ljxtymrf lkjhgfdsaz lobster1 lochness lockdown lockerroom locksmit locoman0 login123 logistic logitech
loglatin loislane lokomotiv lol12345 lollipop lollypop london11 london12 london22 london99 lonesome lonestar lonewolf longball longbeac longdong longhair
longhorn longhorns longjohn longlegs longshot longview longwood lonsdale lookatme loredana lorenzo1 losangel losangeles loser123 lost4815162342 lostlove
lostsoul lotus123 love1234 love2000 love2011 love4ever loveable lovebird loveboat lovecraf lovefeet lovegirl lovehate lovehurts lovelife loveme89 loverboy
lovergir loverman lovestory loveyou1 loveyou2 lowrider lsdlsd12 lsutiger lthgfhjkm lucas123 lucifer1 lucky123 lucky777 luckyboy luckycat luckydog luckyman
luckyone ludacris lunchbox luojianhua luscious luv2epus lvbnhbq1 lysander lyudmila lzbs2twz m1234567 m6cjy69u35 macarena macaroni macdaddy macgyver machine1
machoman macintos macintosh mackdadd mackenzi macsan26 madagaskar madala11 maddison madelein madhouse madison1 madison2 madonna1 magellan maggie11 maggie12
maggiema magic123 magician magicman magister magnavox mahalkit mahalkita mailcreated5240 majestic makarova makaveli makeitso makeksa11 makelove makemone
makemoney maksimka maksimus malamute malcolm1 malishka mallard1 mallorca mallrats mama1234 mamabear mamacita mamapapa mamasita mammamia mamochka manager1
manchest mancheste manchester mandarin mandingo mandolin mandrake manhatta mannheim manunite manunited mapet123456 maplelea maradona marajade marathon
marauder marbella marcello marcius2 marcopol marcopolo margarit margosha maria123 mariachi mariajos marigold marijuan marijuana marillio marilyn1 mariners
marines1 marino13 mariposa marishka marissa1 mark1234 marketin marlboro marmelad martin12 martina1 martini1 maryjane masahiro masamune maserati mash4077
masha123 mason123 master01 master11 master12 master123 master22 master23 master69 master99 masterbaiting masterbate masterbating masterca masterch masterchief
masterkey masterlo mastermi mastermind masterof masters1 masturba masturbation masyanya matahari matchbox matematika matt1234 matthew1 matthew2 matthew7
matthew8 matthew9 matthias matthieu mattingl maurice1 maurizio maurolarastefy maverick maverick1 mavericks maxim1935 maximili maximilian maximus1 maxpayne
maxpower maxwell1 maynard1 mazafaka mazahaka mazda323 mazda626 mazdarx7 mazdarx8 mazinger mcdonalds meandyou meatball meathead meatloaf mechanic medicina
meditate medvedev megabyte megadeth megamanx megatron melanie1 melbourn melissa1 melissa2 memphis1 memyself meowmeow mephisto mercedes mercedes1 mercury1
mercury7 meridian mersedes metal666 metalgear metalica metallic metallica metallica1 metalman methodman metro2033 metropol mevefalkcakk mexicano michael0
michael1 michael2 michael3 michael4 michael5 michael6 michael7 michael8 michael9 michaelc michaeld michaelj michele1 michelin michelle1 michigan mick7278
mickeymouse microlab microphone microsof microsoft microsoft1 midnight midnight1 mike1234 mikey123 milamber milashka milehigh milenium milhouse milkbone
milkshak milkyway milleniu millenium millenni millerli million1 millwall milwauke mimi92139 mine2306 minecraft minecraft1 minidisc minimoni minnesot minotaur
minstrel miranda1 mironova miroslav mischief misfit99 misiaczek mission1 mississi misskitt mistress misty123 mistydog mitsubis mittens1 mizredhe mnbvcxz1
mobbdeep modelsne mojojojo molly123 mollycat mollydog mom4u4mm monalisa monaliza monamour monday12 money123 money4me moneybag moneymak moneymaker moneyman
mongoose monica69 monique1 monkey01 monkey10 monkey11 monkey12 monkey123 monkey13 monkey22 monkey69 monkey77 monkey99 monkeybo monkeyboy monkeyma monkeyman
monolith monopoly monster1 monster2 montagne montana1 montecar montecarlo monterey montgom240 montreal montrose monty123 mookie12 moonbeam moonglow moonligh
moonlight moonshin moonshine moonstar moosehea mooseman morebeer moremone morkovka morozova morpheus morrigan morrisse morrowind mortgage morticia mortimer
mostwanted motdepasse motherfu motherlode motocros motocross motorcyc motorhea motorola mounta1n mountain mousepad mowerman mrbrownx mrbrownxx mrbungle
muaythai mudhoney mudvayne muenchen muffdive mulberry multimed multiplelo multisyn multisync munchkin murzilka mushroom music123 musicman mustang0 mustang1
mustang2 mustang3 mustang4 mustang5 mustang6 mustang7 mustang8 mustang9 mustangg mustangs mwq6qlzo my3girls myfamily myfriend mymother mynameis mynewpas
mypasswo mypassword mysecret myspace1 mysql123 mysterio myxworld myxworld4 nadezhda nancy123 naruto12 naruto123 nascar20 nascar24 nascar88 nascar99 nashvill
nastenka nastyboy natalia1 natalie1 nataliya natas666 natascha natasha1 natashka natedawg natedogg nathan12 nathanie naughty1 naughtyboy nautilus navigato
navigator navyblue navyseal nazareth nbuhtyjr ncc1701a ncc1701d ncc1701e ncc74656 nebraska necromancer nederland needforspeed nefertiti nemesis1 nemrac58
netscape network1 networkingpe netzwerk neutrino neveragain neverland nevermin nevermind nevermor nevermore newcastl newhaven newjerse newjersey newlife1
neworder newpass1 newpass6 newpassword newpoint newport1 newports newproject2004 newstart newstyle newworld newyork1 newzealand nezabudka nfvthkfy nicholas1
nick1234 nicklaus nicolas1 nietzsch nighthaw nighthawk nightman nightmar nightowl nightwin nightwish nightwolf nihao123 nikita123 nikitina nikolaev nikolaeva
nikolaus nineball nineinch nintendo nirvana1 nitehawk njdevils noaccess nochance nocturne nohack04 nokia123 nokia3230 nokia3250 nokia3310 nokia5130 nokia5228
nokia5230 nokia5300 nokia5310 nokia5530 nokia5800 nokia6120 nokia6233 nokia6300 nokia6303 nokia7610 nokia8800 nokian70 nokian73 nokian95 nolimit5 nolimit8
nolimit9 nolimits noname123 noncapa0 nonmembe nonrev67 nopasswo nopassword normandy northsta nosferat nosferatu nostromo notagain note1234 notebook nothing1
notoriou notredam notredame nottingh nounours novartis novembre novifarm novikova nowayout nowwowtg nthvbyfnjh ntktdbpjh numbnuts nuttertools nwo4life
nygiants nyknicks nyyankee oakland1 oakridge oblivion obsidian oc247ngucz oceans11 octavian october1 october2 odysseus offsprin ohiostat ohiostate oldschoo
oldschool oldsmobi oldsmobile oldtimer oliveoil olivetti omega123 omegaman omegared omsairam onelove1 onepiece onlyone4 ontheroc opelastra open1234 opendoor
openopen opensesa opensesame operatio operator optimist optiplex oqglh565 oracle123 orange12 orange44 orange77 oranges1 oriflame orlando1 oscar123 oscardog
ou8124me outsider overkill overlord ozlq6qwm p0015123 p0o9i8u7 p455w0rd p4ssw0rd p4ssword p@ssw0rd p@ssw0rd1 p@ssword pa55w0rd pa55word pacific1 pacifica
packard1 packers1 packers4 paganini painkiller paintbal paintball pakistan paladin1 pallmall palmetto palmtree paloalto panasoni panasonic panchito pandora1
panorama pantera1 panther1 panther2 panthers pantyhos pantyhose papabear papamama paperboy papercli papercut paperino papichul papillon parabola parachut
paradigm paradise paradoxx parallax paramedi paramedic paramore paris123 parlament parol123 parol999 parolparol parsifal partizan partytim pasadena pass1234
pass1word passcode passfind passion1 passions passmast passmaster passport passthie passw0rd passw0rd1 passw0rd123 passwerd passwor1 password password0
password00 password01 password1 password1! password10 password11 password12 password123 password1234 password13 password2 password23 password3 password4
password5 password6 password69 password7 password9 password99 passwords passwort passwort1 patches1 pathfind pathfinder patricio patrick1 patrick2 patrick7
patrick8 patrick9 patriot1 patriots patrizia patrycja patterso paul1234 paulchen paulina1 pavement pavilion payton34 pdtpljxrf peaceout peaches1 peaches2
pearljam peartree pebbles1 pedigree pedro123 peekaboo pegasus1 pendrago pendragon penetrating penetration penguin1 penguins pennstat pennstate pennywis
pennywise penthous pentium1 pentium2 pentium3 pentium4 pepper01 pepper12 pepper123 pepsi123 pepsicol pepsicola pepsimax pepsione peregrin perfect1 perfecto
performa pericles pernille pershing pertinant pervasive pervert1 pescator peter123 peterbil peterbilt peternor peternorth peterose peterpan petrovich pfchfytw
phaedrus phantasm phantom1 phantom2 phantoms pharmacy pheasant phialpha philippe phillesh phillies phillip1 philmont phish420 phoenix1 phoenix2 photoman
phydeaux pi314159 pianoman piazza31 picasso1 pickles1 pictuers piehonkii piercing pikachu1 piligrim pilot123 pineappl pineapple pinecone pinetree pinewood
pinggolf pingpong pinkfloy pinkfloyd pinnacle pioneer1 pipeline pippen33 piramida piramide pistons1 pitbull1 pitchers pittbull pittsbur pizza123 pizzahut
pizzaman pizzapie pjflkork plastic1 plastics platinum platypus playball playboy1 playboy2 playboys player69 playgirl playmate playstat playstation
playstation3 playtime pleaseme plokijuh plumber1 plymouth pmdmscts poiu0987 poiu1234 poiuytrewq pokemon1 pokemon12 pokemon123 pokesmot polarbea polarbear
polaris1 polaroid police22 polniypizdec0211 polniypizdec110211 pontiac1 poohbear pool6123 poontang poopface poophead popcorn1 porkchop porsche1 porsche9
porsche911 portland portsmou portugal poseidon positivo postgres postgres1 postgresql postov10 postov1000 pourquoi power123 powerade powerboo powermac
powerman ppspankp prashant preacher precious precious1 predator prelude1 presario presiden preston1 prettybo prettyboy prettygirl pridurok primaver primavera
primetim primetime21 primrose princesa princess princess1 princessa princeto principe pringles printer1 priscill private1 priyanka prodigy1 profesor professo
programm promethe prospero prostock proverbs prufrock psychnau psychnaut1 psylocke ptfe3xxp ptybnxtvgbjy puertorico pufunga7782 pullings pumpkin1 pumpkins
punisher punkrock puppydog puravida purple12 pxx3eftp pyramid1 pyramide pyramids q1234567 q12345678 q123456789 q1234567890 q1q2q3q4 q1q2q3q4q5 q1w2e3r4
q1w2e3r4t q1w2e3r4t5 q1w2e3r4t5y6 q1w2e3r4t5y6u7 q1w2e3r4t5y6u7i8 q2w3e4r5 q8zo8wzq qawsedrf qawsedrftg qaz12345 qaz123456 qaz123wsx qaz1wsx2 qazedctgb
qazwsx12 qazwsx123 qazwsxed qazwsxedc qazwsxedc1 qazwsxedc12 qazwsxedc123 qazwsxedcrfv qazwsxedcrfvtgb qazxcvbn qazxsw12 qazxsw123 qazxsw21 qazxswed qazxswedc
qazxswedcvfr qcmfd454 qpwoeiruty qq123456 qq123456789 qqqq1111 qqqqqqq1 qqqwwweee quagmire quality1 quant4307s quantum1 queenbee quicksan quicksil quicksilver
qw123456 qw12er34 qwaszx12 qwaszx123 qwe123asd qwe123qwe qwe123rty qweasd12 qweasd123 qweasdzx qweasdzxc qweasdzxc1 qweasdzxc123 qwedcxzas qwedsazxc qweqwe123
qwer1234 qwer12345 qwer4321 qwerasdf qwerasdfzxcv qwerfdsa qwert123 qwert12345 qwertasdfg qwerty00 qwerty10 qwerty11 qwerty12 qwerty123 qwerty1234 qwerty12345
qwerty123456 qwerty123456789 qwerty13 qwerty2010 qwerty21 qwerty22 qwerty321 qwerty66 qwerty666 qwerty77 qwerty777 qwerty78 qwerty88 qwerty89 qwerty99
qwertyasdfgh qwertyu1 qwertyu8 qwertyui qwertyuio qwertyuiop qwertyuiop1 qwertyuiop123 qwertyytrewq qwertzui qwertzuiop qwerzxcv r2d2c3p0 r2d2c3po r3ady41t
r4e3w2q1 racecars radagast radiance radiohea radiohead radioman raffaele ragnarok raiders1 rainbow1 rainbow2 rainbow6 rainbows raindrop raintree rainyday
raistlin rambo123 rammstei rammstein ramstein ranchero ranger01 ranger11 ranger21 ranger99 rangers1 rangers9 rapunzel rasengan raspberr rasputin rasta220
rastafari rastaman rattolo58 raven123 rawiswar raymond1 razdvatri razorbac rb26dett rdfhnbhf ready2go realdeal realmadrid realtime rebbyt34 rebecca1 reckless
red12345 redalert redbarch redbaron redbeard redbirds redcloud reddevil reddrago reddragon reddwarf redeemed redeemer redgreen redhead1 redheads redhouse
redknapp redlight redneck1 redrider redriver redroses redrover redshift redskin1 redskins redsox04 redstone redstorm redtruck redwing1 redwings reloaded
remingto renegade repytwjd repytwjdf rerehepf rerfhfxf rerfhtre review69 reviewpa revival47 revoluti revolver rfgbnjirf rfhbyjxrf rfhectkm rfhfntkm rfhfufylf
rfhfvtkm rfhfvtkmrf rfhfylfi rfhjkbyf rfhlbyfk rfhnjirf rfkmrekznjh rfnfcnhjaf rfnfgekmnf rfnthbyf rfnthbyrf rfntymrf rfpfynbg rfvbrflpt rfvfcenhf rhapsody
rhbcnbyf rhbcnbyjxrf rhfcfdbwf rhfcfdxbr rhfcjnrf rhfdxtyrj rhjrjlbk rhtdtlrj ricardo1 riccardo ricflair richard1 richard2 richard7 rickster ricochet riffraff
rifleman rightnow rikimaru rileydog rincewind riverrat riversid rjcntyrj rjdfktyrj rjhjktdf rjirfrgbde rjntyjxtr rjyatnrf rjycnfynby rkfdbfnehf rktjgfnhf
roaddogg roadkill roadking roadrunn roadrunner roadstar roadster robert12 roberta1 roberto1 roberts1 robinhoo robinhood robotech robotics rocheste rockbott
rocket88 rocketma rocketman rockfish rockford rockhard rocknrol rocknroll rockport rockroll rockstar rocky123 rockyboy rockydog roflcopter roger123 rolltide
roman123 roman222 romanova romantik romashka romeo123 ronaldinho ronaldo1 ronaldo7 ronaldo9 roodypoo rooster1 roosters root1234 rootbeer rootedit rootroot
rosebowl rosebud1 rosebuds rosemari rosewood rotterda rottweil rsalinas rt6ytere ruffryde rulesyou runescape rush2112 rushmore russell1 russian7 russland
rusty123 rustydog s456123789 saab9000 sabbath1 sabrina1 sacramen sadiedog sagitari sailboat sailfish sailing1 sailormoon salamand salamander salamandra
salasana saltanat saltlake saltydog salvatio salvator samadams samantha samantha1 sammy123 sammyboy sammydog sampson1 samsung1 samsung123 samsung2 samurai1
sanandreas sandiego sandman1 sandmann sandokan sandrine sandrock sandy123 sandydog sangeeta sanity72 sanity729 sanpedro santacru saopaulo sapphire sarah123
sarajevo sarasota saratoga sasha123 sasha1234 sasha1995 sasha1996 sasha2010 sasha_007 satan666 satana666 satellit satriani saun24865709 sausage1 sausages
savatage save13tx saxophon sayangku sc0tland scarecro scarface scarface1 scarlet1 schastie scheisse schlampe schnecke schneide schnuffi schorsch schumach
scimitar scirocco scooby12 scoobydo scoobydoo scooter1 scooter2 scooters scorelan scorpio1 scorpio7 scorpion scorpions scotland scotsman scott123 scoubidou
scrabble scrapper screamer screwbal screwyou scribble scruffy1 scubadiv scubapro sdsadee23 seagrams seagrave seagulls seahawks seahorse sealteam searcher
searock6 seattle1 sebastia sebastian1 sebastie sebastien secret12 secret123 secretsecret section8 security security1 seductive segblue2 seinfeld seminole
seminoles semperfi semprini senators senha123 sensatio sentinel sephirot sephiroth septembe septembr sepultur sepultura seraphim serendip serenity sergbest
sergeevna sersolution service1 sevastopol seven777 sevenof9 seventee seventy7 sevilia1 sfgiants shadow01 shadow11 shadow12 shadow1212 shadow123 shadow13
shadow69 shadow99 shadowfa shadowma shadows1 shamrock shaney14 shannara shannon1 sharingan sharkman shearer9 sheepdog sheffiel shelley1 shemales sherbert
sherlock sherman1 shevchenko shinigami shirley1 shock123 shooter1 shortsto shotgun1 shotokan showboat showtime shredder shygirl1 sidekick sideshow sidewind
sidewinder siemens1 sigmachi sigsauer silencer silicone sillyboy silver12 silverad silverado silverfo silverst simon123 simonsay simpson1 simpsons sinfonia
singapor sinister siouxsie sithlord sixtynin sixtynine sk84life sk8board sk8ordie skateboa skateboard skeeter1 skeletor skinhead skipjack skipper1 skittles
skorpion skorpion39 skydiver skyline1 skypilot skytommy skywalke skywalker slacking slamdunk slapnuts slapshot slaveboy slayer66 slayer666 sleepers slickric
slimed123 slimshad slimshady slipknot slipknot1 slipknot666 slippery slowhand slowpoke slowride smackdow smackdown smallvil smallville smarties smashing
smeghead smile123 smirnoff smirnova smith123 smoke420 smokedog smokeweed smolensk smoochie smoothie smuggles snakeeye snakeman snapper1 snapshot sneakers
snickers snickers1 snoogans snoogins snoopdog snoopdogg snoopy12 snowball snowbird snowboar snowboard snowdrop snowflak snowflake snowman1 snuggles sobriety
soccer10 soccer11 soccer12 soccer13 soccer14 soccer15 soccer17 soccer21 soccer22 soccer99 sochi2014 socrates softball softtail software sojdlg123aljg sokolova
sokrates soldier1 solidsnake solitari solitude solnishko solstice sonechka songbird sonic123 sonnyboy sony1234 sonyericsson sonyvaio sooners1 sophie12
sopranos sorcerer sorrento soso123aljg soulmate southpar southpark southpaw southsid southside spaceman spanking sparhawk sparkles sparky12 spartacu spartan1
spartan117 spartans sparticu speaker1 special1 specialk spectrum speedrac spencer1 spider12 spiderma spiderman spiderman1 spitfire splatter splinter spongebo
spongebob spoonman sportste sprewell spring2024 spring99 springst sprinter sprocket squeaker squerting squirrel squirter srilanka srinivas ssptx452 stairway
stalingrad stalker1 stallion stallone stamford stampede stanislav stanley1 starbuck starbucks starcraf starcraft stardust starfire starfish starflee starfury
stargate stargaze starligh starlight starlite starship start123 startrek starwar1 starwars starwars1 stealth1 steamboa steeler1 steelers steelers1 steelhea
steinway stepanov stepanova stephani stephen1 steve123 stewart1 stickman stigmata stiletto stinger1 stingray stocking stonecol stonecold stonewal stoppedby
strange1 stranger strannik stratfor stratoca strawber strawberry straycat streaming strekoza strider1 striker1 stripclub stripper stroller strummer strutter
student1 studio54 studmuff sublime1 submarin submissi subwoofer success1 sugarbea sugarbear sugarray suikoden summer01 summer05 summer06 summer10 summer11
summer12 summer20 summer2023 summer2024 summer2025 summer2026 summer69 summer99 summerti summertime sundance sunderla sundevil sunflowe sunflower sunghile
sunlight sunny123 sunnyboy sunnyday sunrise1 sunshine sunshine1 super123 superbad superbee superbow superboy superdog superdup superduper superfly supergir
supergirl superman superman1 superman2 supermanboy supermar supermen supernov supernova superpuper superson supersonic supersta superstar supertra support1
sureshot surfing1 surveyor survivor suzanne1 sveta123 svetlana svetlanka swallows swampfox sweetgirl sweethea sweethear sweetie1 sweetnes sweetness sweetpea
swetlana swimmer1 swimming swingers swinging swordfis swordfish sycamore sylvania sylveste syncmast syncmaster syracuse sysadmin system32 t34vfrc1991 t3fkvkmj
tabbycat tacobell taekwond taekwondo tagheuer tailgate tajmahal takamine take8422 takehana taliesin talisman tamerlan tampabay tamwsn3sja tanechka tangerin
tangerine tanstaaf tarantul tarasova tarheel1 tarheels tashkent tatooine taylor12 tazdevil tazmania teacher1 teamwork teardrop technics technolo teddy123
teddybea teddybear teengirl teiubesc telecast telemark telephon teleport televisi televizor temp1234 tempest1 temporar temporary temptress tenerife tennesse
tennis12 tequiero tequila1 tequilla terminat terminator terrapin terriers test1234 testibil testicle testing1 testing123 testtest thailand thanatos thankgod
thankyou thebeach thebeast theclash theclown thedevil thedoors theflash theforce thegame1 thegirls thegreat thejoker thelast1 themaster thematri thematrix
theraven theresa1 therock1 thesaint thetachi thething thetruth theworld thinkpad thirdeye thirteen thisisit thisisme thomas01 thomas12 thomas123 thor5200
thorsten threesom thuglife thumbnils thumper1 thunder1 thunder2 thunder5 thunder7 thunderb thunderbird thunders tiberian tiberium tiberius tickleme tickling
ticklish ticktock tiffany1 tiger123 tigercat tigerlil tigerman tigerpaw tigerwoo tigerwoods tigger01 tigger12 tigger69 tigrenok timebomb timelord timeport
timothy1 timoxa94 tinfloor tinhorse tinkerbe tinkerbel tinkerbell tiramisu titanic1 titanium titleist titlover tkbpfdtnf tm371855 tmjxn151 tokenbad tokiohotel
tomahawk tombston tomcat14 tommy123 tommyboy tommygun tomservo tomwaits tonyhawk toolshed tooltime toonarmy tooshort toosweet topdevice topflite topolino
topsecre topsecret toriamos tornado1 toronto1 tortoise toshiba1 totalwar tottenha tottenham touchdow toughguy toulouse tracker1 trader12 trafford trailers
trainman tranmere transam1 transfor translator transpor trashman traveler travelle travesti travolta treasure treefrog treetops trfnthbyf triangle tribbles
triforce trigger1 trillian trinitro trinitron trinity1 trinity3 triplets tristan1 triumph1 trojans1 trombone trooper1 troopers trouble1 trousers trucker1
truckers trucking trueblue truelove truffles trumpet1 trustn01 trustno1 trustnoo trustnoone tryagain tubitzen tuczno18 tujazopi tujheirf tunafish turkey50
tvxtjk7r twilight twinboys twisted1 tyler123 tyrik123 ufhvjybz ufkfrnbrf uhbujhbq uiegu451 ukflbfnjh ukflbjkec ultimate ultraman umbrella uncencored underdog
undergro underpar undertak undertaker undertow underwoo underwor unforgiven unicorn1 universa universi ursitesux user1234 username usmarine usmc0311 usmc1775
utahjazz utjvtnhbz utyyflbq vacation vagabond valdemar valdepen valentin valentina valerie1 valeriya valhalla valkyrie valleywa vampire1 vancouve vanessa1
vanguard vanhalen vanyarespekt varadero vaseline vasileva vasilisa vatoloco vauxhall vaz21099 vegas123 vehpbkrf vendetta venezuel venom121293 verbatim
vergeten veritech verizon1 vermont1 veronika verycool verygood verygoodbot vetteman vfhbyjxrf vfhecmrf vfhnsirf vfhufhbnf vfhvtkfl vfitymrf vfkmdbyf
vflfufcrfh vfnbkmlf vfntvfnbrf vfpfafrf vfrcbv123 vfrcbvec vfrcbvrf vfrfhjdf vfrfhjys vfvfbgfgf vfvfgfgf vfvfgfgfz vfvfvskfhfve vfylfhby vfylfhbyrf vibrator
vicecity victoria1 victory1 viewsoni viewsonic vikings1 viktoria viktorija viktoriy viktoriya vincent1 violator violetta viper123 vipergts virginie vittoria
vittorio vivahate vivitron vjhjpjdf vjhrjdrf vjqgfhjkm vjzctvmz vjzgjxnf vkontakte vlad1995 vlad1996 vlad1997 vlad7788 vladimir vladislav vladvlad vodafone
volition volkodav volkswag volkswagen volleyba voltaire voluntee volvo850 volvos40 vonnegut vovochka voyager1 vqsablpzla vsevolod vsjasnel12 vthctltc vw198m2n
vyjujnjxbt w1w2w3w4 w8gkz2x1 wachtwoord waffenss wallace1 wanderer wantsome wapapapa war3demo warchild warcraft warcraft1 warcraft3 wareagle warehous wargames
warhamme warhammer warrior1 warrior2 warriors warszawa wasdwasd washingt watchmen water123 waterboy waterfal waterloo watermel watermelon waterpol waterpolo
waterski wdtnjxtr weare138 weather1 webhompas webmaste webmaster websol76 websolutions webster1 websters wednesda weedhead welcome1 welcome1! welcome12
welcome123 welcome2 welcome8 welkom01 wellcome welldone wellhung wellingt wenef45313 werewolf weronika werthvfy wessonnn westbrom westcoas westcoast westham1
westlife westport westside westwind westwood wg8e3wjf whatever whatever1 whatisit whattheh wheaties whiplash whiskers whiskey1 whistler whiteboy whitedog
whiteout whitepower whitesox whitney1 whocares whoknows whosyourdaddy wildbill wildblue wildcard wildcat1 wildcats wildfire wildroid wildrose wildstar
wildthin wildwest wildwood william1 william2 william3 winchest windmill windows1 windsong windstar windsurf wingchun wingzero winston1 winston2 winter01
winter11 winter12 winter2023 winter2024 winter2025 winter2026 winter99 wisconsi wishbone wishmaster withlove wladimir wolfgang wolfpack wolverin wolverine
wonderboy wonderfu wonkette wooddoor woodduck woodland woodsink woodstoc woodstock woodwork woofwoof worldcup wormwood wp2003wp wrangler wrest666 wrestlin
wrinkle1 wrinkle5 wrinkles wtpmjgda x72jhhu3z xaccess2 xakep1234 xboxlive xcountry xenocide xsw21qaz xsw23edc xthtgfirf xzsawq21 yamahar1 yamahar6 yankees0
yankees1 yankees2 yanochka yanshi1982 yardbird yaroslav ybrjkftdbx yeahbaby year2000 year2005 yes90125 yesterda yfcntymrf yfcnz123 yfgjktjy yfnfitymrf
yingyang yjdsqgfhjkm yjdsqujl yogibear yorkshir yorktown yosemite youandme yourmama yqlgr667 ytngfhjkz ytrhjvfyn ytyfdbcnm yvtte545 yxkck878 yy5rbfsc yyyyyyy1
yzerman1 z1234567 z123456789 z1x2c3v4 z1x2c3v4b5 zachary1 zanzibar zaq11qaz zaq12345 zaq123wsx zaq12wsx zaq1xsw2 zaq1xsw2cde3 zaq1zaq1 zaqwsx123 zaqwsxcde
zaqxswcde zaratustra zasranec zaxscdvf zcxfcnkbdf zenit2011 zeppelin zerocool zidane10 zigazaga zildjian zinedine zolushka zqjphsyf6ctifgu zx123456
zx123456789 zxasqw12 zxc12345 zxcasdqwe zxcasdqwe123 zxcv1234 zxcvasdf zxcvb123 zxcvb12345 zxcvbn12 zxcvbn123 zxcvbnm. zxcvbnm1 zxcvbnm12 zxcvbnm123 zxcvbnmm
zxcvfdsa zxcvvcxz zz123456 zz8807zpl zzzzzzz1
`.trim().split(/\s+/));
