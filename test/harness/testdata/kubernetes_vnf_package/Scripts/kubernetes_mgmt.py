# Served by the built-in driver.
