"""The vocabulary of the embedded generator: slots with their fillers, and the clauses of every domain.

A slot ``{name}`` in a string is filled with an entry of the list of that name, which may hold slots in turn. A domain
uses `GENERAL` and its own lists. Lists that end in ``+`` and ``-`` hold the polar phrases, the frequent ones first. All
other lists are neutral, so that only the polar phrases and the grammar around them (`rtxlib.data.synthetic`) decide a
label. The generator uses every line that is added to a list.
"""

from __future__ import annotations

from itertools import zip_longest


def listed(text: str) -> tuple[str, ...]:
    """The entries of a comma-separated list."""
    return tuple(" ".join(entry.split()) for entry in text.split(","))


def lines(text: str) -> tuple[str, ...]:
    """The entries of a list with one entry per line."""
    return tuple(line.strip() for line in text.strip().splitlines())


GENERAL = {
    "her": listed("""my sister, my aunt, my mother, my grandmother, my wife, my daughter, my niece, the woman next door,
        my old teacher Maria, my friend Anna, my friend Joan, my flatmate Lucy"""),
    "him": listed("""my brother, my uncle, my father, my grandfather, my husband, my son, my nephew, the man next door,
        my old teacher Peter, my friend Tom, my friend Karl, my flatmate Sam"""),
    "them": listed("""my colleagues, my neighbours, my parents, my cousins, the reviewers, my friends, the twins,
        the people at work, two students, the columnists"""),
    "relative": ("{her}", "{him}"),
    "company": ("{her}", "{him}", "{them}"),
    "day": listed("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "daytime": listed("morning, afternoon, evening, noon, night"),
    "weather": listed("rainy, sunny, windy, foggy, cloudy, cold, mild, snowy, hot, grey, dry, damp"),
    "season": listed("spring, summer, autumn, winter, January, March, May, August, October, December"),
    "year": tuple(str(year) for year in range(1991, 2025)),
    "clock": tuple(f"{hour}:{minute}" for hour in range(1, 12) for minute in ("00", "15", "30", "45")),
    "number": tuple(str(number) for number in range(13, 240)),
    "digits": tuple(str(number) for number in range(10007, 99991, 137)),
    "money": tuple(f"{euros}.{cents} euros" for euros in range(2, 70, 3) for cents in ("49", "50", "95", "99")),
    "count": listed("two, three, four, five, six, seven, eight, nine, ten, eleven, twelve"),
    "colour": listed("blue, green, red, grey, black, white, yellow, brown, purple, beige, silver, pink"),
    "town": listed("""Leeds, Porto, Lyon, Oslo, Ghent, Turin, Cork, Bergen, Graz, Tampere, Lublin, Split, Malmo, Bilbao,
        Basel, Aarhus, Dundee, Utrecht, Bremen, Varna, Tartu, Nantes, Parma, Cadiz"""),
    "job": listed("""baker, nurse, carpenter, pilot, librarian, gardener, tailor, plumber, postman, sailor, lawyer,
        farmer, violinist, surveyor, beekeeper, locksmith, chemist, journalist, waiter, potter"""),
    "device": listed("laptop, tablet, phone, projector, old television, small monitor"),
    "dish": listed("""lentil soup, mushroom risotto, onion tart, fish stew, bean salad, potato gratin, chicken curry,
        pumpkin ravioli, lamb pie, rice bowl, rye bread, apple cake, plum dumplings, noodle soup"""),
    "appliance": listed("""kettle, toaster, blender, lamp, headset, backpack, keyboard, razor, tent, drill, camera,
        speaker, mattress, raincoat, coffee grinder, bicycle pump, desk chair, clock radio, suitcase, heater"""),
    "landmark": listed("""town hall, station, old mill, library, harbour, museum, post office, bridge, market square,
        water tower, bus stop, chapel, school, park gate"""),
    "first": listed("""Silent, Northern, Paper, Seventh, Winter, Salt, Glass, Midnight, Copper, Distant, Second, Blue,
        Iron, Velvet, Long, Amber, Crimson, Eastern, Hidden, Marble, Open, Double, Quarter, River"""),
    "second": listed("""Harbour, Letter, Season, Garden, Station, Compass, Orchard, Window, Bridge, Mountain, Lantern,
        Circle, Island, Crossing, Passage, Sparrow, Meadow, Anchor, Tower, Valley, Signal, Mirror, Canal, Ferry"""),
    "proper": ("{first} {second}",),
    "very": ("", "", "", " really", " very", " truly", " quite", " rather", " pretty", " so"),
    "opening": ("", "", "", "", "", "honestly, ", "to be fair, ", "in short, ", "well, ", "I think that ", "so, ",
                "I would say that ", "all in all, ", "as far as I can tell, ", "I suppose that ",
                "for what it is worth, "),
    "felt": listed("felt, seemed, looked, turned out, proved"),
    "tag": ("Anyway.", "That is all.", "So much for now.", "More next {day}.", "Make of that what you will."),
}

# Clauses, the frequent ones first: (sign, class of the polar phrase, pattern). A "plain" clause has the polarity of its
# phrase. A "turned" clause is one level deep: it reverses the polarity (−1), or only sounds as if it did (+1).
REVIEW_CLAUSES = {
    "plain": (
        (+1, "adjective", "{was}{very} {main}"),
        (+1, "verb", "{np} {main}"),
        (+1, "adjective", "{np} {felt}{very} {main}"),
        (+1, "noun", "{was} {main}"),
        (+1, "adjective", "I found {np}{very} {main}"),
        (+1, "adjective", "I would call {np}{very} {main}"),
    ),
    "turned": (
        (-1, "adjective", "{was} not{very} {main}"),
        (+1, "adjective", "{was} nothing but {main}"),
        (-1, "verb", "nothing about {np} {main}"),
        (+1, "verb", "there is no denying that {np} {main}"),
        (-1, "noun", "{was} by no means {main}"),
        (+1, "noun", "{was} nothing short of {main}"),
        (-1, "adjective", "I never found {np}{very} {main}"),
        (+1, "adjective", "I never once doubted that {was} {main}"),
        (-1, "adjective", "nobody would call {np}{very} {main}"),
        (+1, "adjective", "nobody would call {np} less than {main}"),
        (-1, "adjective", "{was} hardly {main}"),
        (-1, "verb", "{np} never {main}"),
        (-1, "adjective", "{was} anything but {main}"),
        (-1, "adjective", "nothing about {np} {felt}{very} {main}"),
    ),
}
MESSAGE_CLAUSES = {
    "plain": (
        (+1, "adjective", "{was} {main}"),
        (+1, "verb", "{np} {main}"),
        (+1, "adjective", "we note that {was} now {main}"),
    ),
    "turned": (
        (-1, "adjective", "{was} not {main}"),
        (+1, "verb", "there is no error: {np} {main}"),
        (-1, "verb", "it is wrong that {np} {main}"),
        (+1, "adjective", "it is not wrong that {was} {main}"),
        (-1, "adjective", "{was} no longer {main}"),
        (+1, "adjective", "{was} not only noted but {main}"),
        (-1, "adjective", "in no way {was} {main}"),
    ),
}

REVIEWS = {  # the polar phrases and facts that fit any review
    "adjective+": listed("""good, great, excellent, wonderful, superb, brilliant, delightful, terrific, fantastic,
        lovely, pleasant, impressive, marvellous, splendid, outstanding, charming, remarkable, enjoyable, satisfying,
        first-rate, flawless, magnificent, perfect, amazing"""),
    "adjective-": listed("""bad, poor, terrible, awful, horrible, dreadful, disappointing, mediocre, annoying, dismal,
        unpleasant, lousy, pathetic, appalling, second-rate, irritating, tiresome, frustrating, miserable, dire,
        tedious, careless, sloppy, unbearable"""),
    "noun+": listed("""a delight, a pleasure, a treat, a joy, a triumph, a gem, a success, a bargain for the price,
        a welcome surprise, an absolute winner"""),
    "noun-": listed("""a mess, a failure, a letdown, a chore, a disgrace, a joke, a disaster, a waste of time,
        a rude surprise, an utter flop"""),
    "verb+": listed("""impressed me, delighted me, won me over, pleased me, exceeded my hopes, made me smile,
        deserved praise, earned my respect, was worth the money, made me happy"""),
    "verb-": listed("""annoyed me, disappointed me, let me down, irritated me, fell short of my hopes, made me sigh,
        deserved scorn, tried my patience, was a waste of money, made me angry"""),
    "fact": lines("""
        I am writing this on a {weather} {day} {daytime}
        this was in {season} {year} in {town}
        {company} came along from {town} for the {day}
        I had {count} hours in {town} that {day}
        {company} told me about it {count} {weather} weeks ago
        it was {company} who first mentioned it, back in {season}
        as a {job} I have {day} {daytime}s to myself
        I moved from {town} to {town} in {season} {year}
        {relative} works as a {job} near the {landmark} in {town}
    """),
}

DOMAINS = {
    "movies": {
        "one": listed("""plot, script, acting, ending, dialogue, soundtrack, camera work, pacing, leading actress,
            direction, final act, opening scene, humour, editing, cast, villain, romance, story, score, lighting,
            chase, middle part, narrator, wardrobe, animation, design, atmosphere, music, first half, last hour"""),
        "many": listed("""actors, jokes, chase scenes, special effects, costumes, characters, songs, plot twists,
            supporting actors, fight scenes, landscapes, dances"""),
        "item": listed("film, movie, picture, documentary, thriller, comedy, drama, western, cartoon, sequel, remake"),
        "name": ("{proper}",),
        "np": ("the {one}", "the {one}", "the {many}", "this {item}", "the {one} in {name}", "{name}"),
        "was": ("the {one} was", "the {one} was", "the {many} were", "this {item} was", "the {one} in {name} was",
                "{name} was"),
        "adjective+": listed("gripping, witty, moving, funny, clever, stirring, touching, absorbing"),
        "adjective-": listed("boring, dull, predictable, wooden, clumsy, corny, lifeless, dreary"),
        "noun+": listed("a masterpiece, a classic, a work of art"),
        "noun-": listed("a bore, a snooze, a muddle"),
        "verb+": listed("moved me to tears, kept me awake, gripped me"),
        "verb-": listed("bored me to tears, sent me to sleep, lost me"),
        "fact": lines("""
            we saw {name} on a {weather} {day} with {company}
            the {item} runs for {number} minutes and was shot near {town}
            it follows a {job} who moves from {town} to {town} one {season}
            {company} picked {name} for our {day} film night
            the credits thank a former {job} and a {job} from {town}
            the {item} is set in {town} around {year}
            the cinema by the {landmark} showed it at {clock} on {day}
            there is a subtitled version, which we watched with {company} on {day}
            the director grew up in {town} and once worked as a {job}
            part of it takes place aboard a night train to {town}
            I streamed the {item} on my {device} during a {weather} {daytime}
            we had {dish} and a {dish} before the {clock} screening
            the poster shows a {colour} umbrella and a {colour} {appliance}
            it came out in {season} {year}, after a novel by a {job}
            row {count} was free, so {company} and I sat there
            I compared it with {name}, which has the same screenwriter
            a {job} and a {job} share an office in the second scene
            the disc has {count} deleted scenes and a talk with the {one} department
            in one scene a {appliance} is carried across {town} by a {job}
            on the way out we passed the shop that sells {colour} {appliance}s
        """),
    },
    "local business": {
        "one": listed("""service, food, menu, staff, kitchen, waiter, coffee, terrace, breakfast, location, dining room,
            wine list, chef, bar, haircut, reception, parking, lobby, lunch, garden, bakery counter, dessert,
            atmosphere, music, lighting, design, waiting room, front desk, first visit, last visit"""),
        "many": listed("""waiters, portions, rooms, desserts, tables, drinks, cakes, starters, opening hours,
            bathrooms, side dishes, baristas"""),
        "item": listed("restaurant, cafe, bakery, hotel, barber shop, pub, bistro, garage, dentist, gym, pizzeria"),
        "name": ("{first} Corner", "{first} House", "the {second} {item}"),
        "np": ("the {one}", "the {one}", "the {many}", "this {item}", "the {one} at {name}", "{name}"),
        "was": ("the {one} was", "the {one} was", "the {many} were", "this {item} was", "the {one} at {name} was",
                "{name} was"),
        "adjective+": listed("friendly, welcoming, spotless, attentive, fresh, cosy, prompt, polite"),
        "adjective-": listed("rude, hostile, filthy, inattentive, stale, chaotic, arrogant, bland"),
        "noun+": listed("a feast, a haven, a credit to the street"),
        "noun-": listed("a dump, a nightmare, a blot on the street"),
        "verb+": listed("made us feel at home, treated us kindly, brought us back"),
        "verb-": listed("made us feel like a burden, treated us coldly, drove us away"),
        "fact": lines("""
            we came to {name} on a {weather} {day} with {company}
            it stands on {second} Street, {number} steps from the {landmark}
            {company} and I had the {dish} with the {dish}
            the {item} seats about {number} people and opens at {clock}
            I booked a table for {count} on {day} at {clock}
            guests park behind the {landmark} until {clock}
            the owner is a former {job} from {town}
            we stopped there at {clock} after a film called {proper}
            they also have a {colour} {appliance} in the window
            it took over the rooms of a {job} in {year}
            {company} sat near the {colour} door next to the {landmark}
            the card lists {dish}, {dish} and {count} kinds of tea
            on {day}s the {item} closes at {clock}
            we paid {money} for {count} of us
            there is a second branch on {first} Street in {town}
            I was in {town} for a {job} conference and walked over at {clock}
            the walls are {colour} and there are {count} stools by the window
            a {job} at the next table had ordered the {dish}
            my {device} was charging there while {company} had {dish}
            the bus from the {landmark} stops there at {clock}
        """),
    },
    "online shopping": {
        "one": listed("""price, delivery, packaging, battery, fabric, zip, handle, build quality, manual, size, lid,
            colour, screen, sound, customer service, return process, plug, stitching, weight, finish, website,
            warranty, cable, charger, seller, design, material, courier, first one, last order"""),
        "many": listed("""buttons, seams, instructions, spare parts, straps, batteries, wheels, photos on the site,
            screws, refills, brushes, hinges"""),
        "item": listed("purchase, product, order, gadget, set, device, model, article, brand, version, {appliance}"),
        "name": ("the {proper} {appliance}", "the {first} {appliance}"),
        "np": ("the {one}", "the {one}", "the {many}", "this {item}", "the {one} of {name}", "{name}"),
        "was": ("the {one} was", "the {one} was", "the {many} were", "this {item} was", "the {one} of {name} was",
                "{name} was"),
        "adjective+": listed("sturdy, reliable, handy, durable, practical, solid, comfortable, useful"),
        "adjective-": listed("""flimsy, faulty, useless, fragile, defective, cheap-looking,
            uncomfortable, worthless"""),
        "noun+": listed("a lifesaver, a keeper, a smart buy"),
        "noun-": listed("a dud, a lemon, a bad buy"),
        "verb+": listed("worked like a charm, lasted for ages, did the job"),
        "verb-": listed("fell apart at once, broke within days, missed the point"),
        "fact": lines("""
            I ordered the {colour} {appliance} on {day} and had it {count} days later
            the box holds one {appliance}, a cable and a {colour} pouch
            it weighs {number} grams and comes in {colour} and {colour}
            {relative} keeps it in the hall on {day}s
            {relative} has the same {appliance} in {colour}
            I bought {count} of these for a {job} in {town}
            the parcel came from {town} with a printed invoice
            we used it while we watched {proper} on a {weather} {daytime}
            {relative} makes {dish} with it on {day}s
            item {digits} was listed at {money} in {season}
            I chose the {colour} version, size {number}, for {company}
            the label says it was made near {town} in {year}
            the page for the {appliance} has {number} photos and {count} colours
            it replaces a {colour} {appliance} from {year}
            it went to the pick-up point by the {landmark} at {clock}
            the {appliance} stands between the {device} and a {colour} shelf
            order {digits} was for {relative}, who lives in {town}
            I carried it to the cafe by the {landmark} to try it over {dish}
            the other customer photos are from a {job} and a {job}
            the {first} range has {count} sizes and a {colour} trim
        """),
    },
    "messages": {
        "thing": listed("""parcel {digits}, your account, invoice {digits}, your card, your subscription, your refund,
            your tax file, order {digits}, your phone contract, your mailbox, your booking for {day}, your insurance,
            the package from {town}, your library pass, ticket {digits}, your electricity bill"""),
        "np": ("{thing}",),
        "was": ("{thing} is",),
        "link": ("www.example.com/{digits}", "pay.example.org/{digits}", "example.net/{second}"),
        "adjective-": listed("""safe, settled, paid in full, in order, confirmed, up to date, on its way,
            free of charge, covered, verified, unlocked, ready, approved, active, complete, valid until {season}"""),
        "adjective+": listed("""blocked, frozen, suspended, overdue, on hold, at risk, locked, about to expire,
            unverified, restricted, flagged, disabled, under review, unpaid, compromised, cancelled from {day}"""),
        "verb-": listed("""needs nothing from you, asks for no details, will renew by itself, costs nothing more,
            can be left as it is, requires no reply, carries no charge, stays open as agreed"""),
        "verb+": listed("""must be confirmed at {link}, needs your card number today, will be lost unless you reply,
            entitles you to a prize of {money}, requires a fee of {money} within {count} hours,
            can be released only through {link}, calls for your code by {clock}, stays closed until you pay {money}"""),
        "opening": ("", "", "", "hello, ", "dear customer, ", "reminder: ", "for your information, ",
                    "good {daytime}, ", "update: ", "hi again, "),
        "fact": lines("""
            this is the office in {town}, open on {day} until {clock}
            the number of this message is {digits}
            {company} will be at the {landmark} at {clock} on {day}
            we wrote to you on {day} about the {appliance} from {town}
            the desk by the {landmark} moved to {second} Street in {season}
            {relative} says hello and asks about {day} {daytime}
            I will bring the {dish} and the {colour} {appliance} on {day}
            the courier passes {second} Street at {clock} on {day}s
            the amount on file is {money}, dated {season} {year}
            there are {count} letters from the {job} in {town}
            see you at the {landmark} at {clock} for the {dish}
            your contact in {town} is a {job} from the {first} team
            the form has {count} pages and a {colour} stamp
            it was logged at {clock} on a {weather} {day}
        """),
    },
}


def table(domain: str) -> dict[str, tuple]:
    """Every list of a domain. The lists that all reviews share are interleaved with the domain's own."""
    own = DOMAINS[domain]
    if domain == "messages":
        return GENERAL | own | MESSAGE_CLAUSES
    woven = {
        slot: tuple(entry for pair in zip_longest(shared, own[slot]) for entry in pair if entry)
        for slot, shared in REVIEWS.items()
    }
    return GENERAL | own | REVIEW_CLAUSES | woven
