/** Domains whose mailboxes anybody gets: nobody who sends from here owns one (contract mail.md §4.2). */
export const freeMailDomains: ReadonlySet<string> = new Set(`
gmail.com googlemail.com outlook.com outlook.de outlook.fr outlook.es outlook.it outlook.jp hotmail.com hotmail.co.uk hotmail.de hotmail.es hotmail.fr hotmail.it live.com live.co.uk live.de live.fr
live.it live.nl msn.com passport.com yahoo.com yahoo.co.uk yahoo.co.in yahoo.co.jp yahoo.ca yahoo.de yahoo.es yahoo.fr yahoo.in yahoo.it yahoo.com.ar yahoo.com.au yahoo.com.br yahoo.com.hk yahoo.com.mx
yahoo.com.sg yahoo.com.tw ymail.com rocketmail.com aol.com aol.de aim.com icloud.com me.com mac.com gmx.com gmx.net gmx.de gmx.at gmx.ch gmx.us web.de freenet.de t-online.de arcor.de mail.de posteo.de
mailbox.org tutanota.com tutanota.de tutamail.com tuta.io tuta.com keemail.me proton.me protonmail.com protonmail.ch pm.me zoho.com zohomail.com zohomail.eu fastmail.com fastmail.fm hey.com mail.com email.com
usa.com post.com inbox.com hushmail.com lavabit.com runbox.com disroot.org riseup.net mail.ru bk.ru inbox.ru list.ru internet.ru yandex.ru yandex.com yandex.ua yandex.kz ya.ru rambler.ru lenta.ru
ukr.net i.ua meta.ua seznam.cz email.cz post.cz centrum.cz atlas.cz volny.cz azet.sk zoznam.sk centrum.sk wp.pl o2.pl onet.pl onet.eu op.pl interia.pl interia.eu poczta.fm gazeta.pl tlen.pl libero.it
virgilio.it tiscali.it alice.it tin.it inwind.it iol.it orange.fr wanadoo.fr free.fr laposte.net sfr.fr neuf.fr bbox.fr numericable.fr voila.fr bluewin.ch sunrise.ch hispeed.ch telenet.be skynet.be
proximus.be ziggo.nl kpnmail.nl planet.nl home.nl xs4all.nl hetnet.nl casema.nl chello.nl btinternet.com btopenworld.com sky.com virginmedia.com ntlworld.com talktalk.net blueyonder.co.uk comcast.net
verizon.net att.net sbcglobal.net bellsouth.net cox.net charter.net earthlink.net juno.com netzero.net optonline.net rr.com rogers.com shaw.ca sympatico.ca telus.net videotron.ca bigpond.com bigpond.net.au
optusnet.com.au iinet.net.au xtra.co.nz qq.com foxmail.com 163.com 126.com yeah.net sina.com sina.cn sohu.com 139.com 189.cn aliyun.com tom.com 21cn.com naver.com daum.net hanmail.net nate.com
docomo.ne.jp ezweb.ne.jp softbank.ne.jp nifty.com rediffmail.com indiatimes.com sify.com uol.com.br bol.com.br terra.com.br ig.com.br globo.com globomail.com r7.com oi.com.br terra.com prodigy.net.mx
sapo.pt abv.bg mail.bg freemail.hu citromail.hu walla.com walla.co.il bezeqint.net telia.com spray.se bredband.net online.no jubii.dk tdcadsl.dk luukku.com suomi24.fi mail.ee inbox.lv
mailinator.com guerrillamail.com 10minutemail.com temp-mail.org yopmail.com trashmail.com sharklasers.com getnada.com dispostable.com maildrop.cc
`.trim().split(/\s+/));
